"""Step by step: attention computed in seven stations on one's own text, each number open."""

import streamlit as st

from explorer.ui import cell_arithmetic, frame, quiz, station_words, stations, width
from explorer.ui.lesson import proof
from explorer.ui.scene import choose_cell, choose_scene
from explorer.ui.step_questions import QUESTIONS
from explorer.ui.stepper import choose_station

frame.page(
    "Step by step",
    "How attention turns vectors into weights and weights into an output, in seven stations. "
    "Click any cell to see how its number is made.",
)
scene = choose_scene()
station = choose_station(scene.times)

left, right = width.side_by_side((5.0, 3.0))
with right:
    station_words.explain(scene, station)
    with st.container(horizontal=True, gap="small"):
        row, key = choose_cell(scene)
        dimension = cell_arithmetic.choose_dimension(scene, station)
    place = stations.Place(row, key, dimension)
    cell_arithmetic.show(scene, station, place)
with left:
    stations.pictures(scene, station, place)
    stations.row_bars(scene, row, key)
proof(scene)

quiz.test_yourself("step_by_step", QUESTIONS)
