"""``openmxu doctor``."""

from __future__ import annotations

import json

SYSTEM_TOOLS = {"g++", "make", "perl"}

FST = "lz4 and zlib headers"
"""What only waveforms in the format FST need; a machine that runs the tests may lack it."""


def test_installed_tools_are_listed(openmxu):
    result = openmxu("doctor", "--json").json
    assert result["ok"] is True
    assert {tool["name"] for tool in result["tools"]} > SYSTEM_TOOLS
    assert FST in {tool["name"] for tool in result["tools"]}
    assert all(tool["version"] for tool in result["tools"] if tool["name"] != FST)


def test_missing_tools_are_listed_with_their_installation(openmxu, tmp_path):
    environment = {"PATH": str(tmp_path)}
    result = openmxu("doctor", "--json", environment=environment)
    assert result.status == 1
    tools = json.loads(result.stdout)["tools"]
    missing = {tool["name"]: tool["get"] for tool in tools if tool["version"] is None}
    assert missing.pop(FST) == "apt install liblz4-dev zlib1g-dev"
    assert missing == {name: f"apt install {name}" for name in SYSTEM_TOOLS}

    text = openmxu("doctor", environment=environment)
    assert text.status == 1
    for name in SYSTEM_TOOLS:
        assert f"apt install {name}" in text.stdout
