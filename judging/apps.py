from django.apps import AppConfig


class JudgingConfig(AppConfig):
    name = "judging"

    def ready(self) -> None:
        from judging import field_words  # noqa: PLC0415  (forms need the settings)

        field_words.put_in_place()
