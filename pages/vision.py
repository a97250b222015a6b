"""Images: a picture cut into patches, and where each patch looks."""

from explorer.ui import frame, vision

frame.page(
    "Images",
    "To a vision transformer a picture is a text of patches: each small square is a token. Choose "
    "one and see, laid over the picture, which others a head takes in for it.",
)
shown = vision.choose()
if shown is not None:
    vision.show(shown)
