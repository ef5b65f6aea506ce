from django.apps import AppConfig


class EstimationConfig(AppConfig):
    name = "estimation"

    def ready(self) -> None:
        from estimation import receivers  # noqa: F401, PLC0415  (connects the receivers)
