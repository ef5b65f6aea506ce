"""Job handlers of the site itself."""

from evalsite.administration import storage
from judging.services import jobs

jobs.handles(storage.MEASURE)(storage.measure)
