from django.apps import AppConfig


class EvalsiteConfig(AppConfig):
    name = "evalsite"

    def ready(self) -> None:
        # Binds shared tasks to this project's Celery application in every process.
        from evalsite.celery import app  # noqa: PLC0415

        app.set_default()
