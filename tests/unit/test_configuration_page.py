"""The page of all settings says what the settings are."""

from docs.configuration import PAGE, page


def test_the_page_is_what_the_settings_say() -> None:
    assert PAGE.read_text() == page(), "run: python -m docs.configuration"


def test_every_section_of_the_project_file_has_rows() -> None:
    import yaml

    project = yaml.safe_load(PAGE.parent.parent.joinpath("Pulumi.yaml").read_text())
    for section in project["config"]:
        assert f"| `{section}" in page()
