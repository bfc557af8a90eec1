import type { Form } from './response-writer.ts'

/** The method, model and format that a request asks for. */
export interface Route {
  readonly method: Method
  /** `v1`, `v1beta` or `v1alpha`. */
  readonly version: string
  /** Without the `models/` prefix. Empty if the path has no model. */
  readonly model: string
  readonly form: Form
  readonly query: URLSearchParams
  /** The path and query without the API key. */
  readonly path: string
}

type Method =
  | 'generateContent'
  | 'streamGenerateContent'
  | 'countTokens'
  | 'models.list'
  | 'models.get'
  | 'unknown'

export function readRoute(httpMethod: string, address: string): Route {
  // A base URL that ends with a slash results in two slashes.
  const [pathname = '', search = ''] = address.replace(/^\/+/, '/').split(/\?(.*)/s)
  const query = new URLSearchParams(search)
  const path = address.replace(/([?&]key=)[^&]*/g, '$1[redacted]')
  const match = ADDRESS.exec(pathname)
  const { version = '', model = '', verb } = match?.groups ?? {}
  const method = match ? readMethod(httpMethod, model, verb) : 'unknown'
  return {
    method,
    version,
    model: decodeSegment(model),
    form: readForm(method, query),
    query,
    path,
  }
}

function readMethod(httpMethod: string, model: string, verb: string | undefined): Method {
  if (httpMethod === 'GET' && verb === undefined) return model ? 'models.get' : 'models.list'
  if (httpMethod !== 'POST' || !model) return 'unknown'
  return VERBS.find((known) => known === verb) ?? 'unknown'
}

function readForm(method: Method, query: URLSearchParams): Form {
  if (method !== 'streamGenerateContent') return 'json'
  return query.get('alt') === 'sse' ? 'sse' : 'array'
}

function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    // Invalid percent-encoding. No model has such a name, so the request is rejected later.
    return segment
  }
}

const ADDRESS = /^\/(?<version>v1(?:alpha|beta)?)\/models(?:\/(?<model>[^/:]+)(?::(?<verb>\w+))?)?$/

const VERBS = ['generateContent', 'streamGenerateContent', 'countTokens'] as const
