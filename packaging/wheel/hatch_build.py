"""Names the platform of the wheel: its files are for one processor, and for every Python."""

import os

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PlatformHook(BuildHookInterface):
    """Sets the tag that wheel.py has chosen."""

    def initialize(self, version, build_data):
        build_data["pure_python"] = False
        build_data["tag"] = "py3-none-" + os.environ["HAKMEM_WHEEL_PLATFORM"]
