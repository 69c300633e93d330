"""The order of the rooms holds in the includes, and the check notices when it does not."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_rooms  # noqa: E402


def test_every_include_points_up_the_list():
    assert check_rooms.wrong_arrows(ROOT / "hearth") == []


def test_an_include_that_points_down_is_named(tmp_path):
    (tmp_path / "feed").mkdir()
    (tmp_path / "feed" / "ring.h").write_text('#include "hearth/trainer/job.h"\n')
    (wrong,) = check_rooms.wrong_arrows(tmp_path)
    assert "ring.h includes trainer, which feed may not use" in wrong


def test_an_unknown_room_is_named(tmp_path):
    (tmp_path / "misc").mkdir()
    (tmp_path / "misc" / "a.cc").write_text("int a;\n")
    (wrong,) = check_rooms.wrong_arrows(tmp_path)
    assert "misc is not a room" in wrong
