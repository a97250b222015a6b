"""A stop-watch in a page: from a click or key to the last change of a plot plus two frames."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page

from scripts.browser import settled

_WATCH = """
() => {
  if (window.__watch) return;
  const watch = window.__watch = { start: 0, last: {}, painted: {} };
  for (const kind of ['mousedown', 'keydown']) {
    document.addEventListener(kind, (event) => {
      Object.assign(watch, { start: event.timeStamp, last: {}, painted: {} });
    }, true);
  }
  const CHART = '[data-testid="stPlotlyChart"], .still-picture';
  const chartsOf = (record) => {
    const node = record.target.nodeType === 1 ? record.target : record.target.parentElement;
    if (!node || node.closest('.hoverlayer')) return [];  // a tooltip is not the picture
    const around = node.closest(CHART);
    if (around) return [around];
    return [...record.addedNodes].filter((added) => added.nodeType === 1).flatMap(
      (added) => [...(added.matches(CHART) ? [added] : []), ...added.querySelectorAll(CHART)]
    );
  };
  const keyOf = (chart) => {
    const names = [...(chart.closest('[class*="st-key-"]')?.classList ?? [])];
    return names.find((name) => name.startsWith('st-key-'))?.slice(7) ?? '';
  };
  new MutationObserver((records) => {
    const now = performance.now();
    for (const key of new Set(records.flatMap(chartsOf).map(keyOf))) {
      watch.last[key] = now;
      requestAnimationFrame(() => requestAnimationFrame(() => {
        if (watch.last[key] === now) watch.painted[key] = performance.now() - watch.start;
      }));
    }
  }).observe(document.body, {
    childList: true, subtree: true, attributes: true, characterData: true,
  });
}
"""

LOADING = """
const watch = window.__load = { last: 0, painted: 0 };
new MutationObserver(() => {
  const now = watch.last = performance.now();
  requestAnimationFrame(() => requestAnimationFrame(() => {
    if (watch.last === now) watch.painted = performance.now();
  }));
}).observe(document, { childList: true, subtree: true });
"""
"""For `add_init_script`: the same from the start of a page's loading, over the whole document."""

LOADED = """
() => document.querySelector('#vis svg') && window.__load.painted
  && window.__load.painted > window.__load.last && performance.now() - window.__load.painted > 500
"""
"""True once a BertViz page has drawn and has been quiet for half a second."""


def painted(page: Page, act: Callable[[], object], timeout: float = 60) -> dict[str, float]:
    """Milliseconds until each chart was painted after `act`'s last click or key, by its key.

    Charts that did not change are left out.
    """
    page.evaluate(_WATCH)
    act()
    settled(page, quiet=0.4, timeout=timeout)
    found: dict[str, float] = page.evaluate("() => window.__watch.painted")
    return found
