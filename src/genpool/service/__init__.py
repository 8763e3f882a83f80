"""The HTTP service: sentence vectors, labels, explanations and search, and a page that shows them.

>>> from genpool.service import ServedModel, create_app
>>> app = create_app(ServedModel.load())   # for any ASGI server; `genpool serve` uses uvicorn

Needs the extra `serve`: pip install 'genpool[serve]'
"""

from genpool.errors import require_extra as _require_extra

with _require_extra("the HTTP service", "serve"):
    from genpool.service.app import create_app, serve
    from genpool.service.served_model import ServedModel, ServiceSettings

__all__ = ["ServedModel", "ServiceSettings", "create_app", "serve"]
