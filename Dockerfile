FROM python:3.12-slim

ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 EVALSITE_DATA=/data
WORKDIR /app
COPY deploy/system-libraries.sh deploy/
RUN sh deploy/system-libraries.sh && rm -rf /var/lib/apt/lists/*
COPY requirements.txt .
RUN pip install --no-cache-dir -r requirements.txt
COPY . .
RUN useradd --create-home evalsite && mkdir /data && chown evalsite /data
USER evalsite
VOLUME /data
EXPOSE 8000

# Alone, the embedded profile; compose.yaml runs web server and workers as services of their own.
CMD ["python", "manage.py", "up", "--host", "0.0.0.0", "--no-demo"]
