import type { Form } from './reply.ts'

/** What a request asks for, read from its method and address. */
export interface Route {
  readonly method: Method
  /** `v1beta` and the like. */
  readonly version: string
  /** Without the `models/` prefix; empty where none is named. */
  readonly model: string
  readonly form: Form
  readonly query: URLSearchParams
  /** The address without the API key. */
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
  // A base URL that ends in a slash gives two of them.
  const [pathname = '', search = ''] = address.replace(/^\/+/, '/').split(/\?(.*)/s)
  const query = new URLSearchParams(search)
  const path = address.replace(/([?&]key=)[^&]*/g, '$1[redacted]')
  const match = ADDRESS.exec(pathname)
  const { version = '', model = '', verb } = match?.groups ?? {}
  const method = match ? methodOf(httpMethod, model, verb) : 'unknown'
  return { method, version, model: decode(model), form: formOf(method, query), query, path }
}

function methodOf(httpMethod: string, model: string, verb: string | undefined): Method {
  if (httpMethod === 'GET' && verb === undefined) return model ? 'models.get' : 'models.list'
  if (httpMethod !== 'POST' || !model) return 'unknown'
  return VERBS.find((known) => known === verb) ?? 'unknown'
}

function formOf(method: Method, query: URLSearchParams): Form {
  if (method !== 'streamGenerateContent') return 'json'
  return query.get('alt') === 'sse' ? 'sse' : 'array'
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    // Not percent-encoded: no model has such a name, and it will be refused as unknown.
    return segment
  }
}

const ADDRESS = /^\/(?<version>v1(?:alpha|beta)?)\/models(?:\/(?<model>[^/:]+)(?::(?<verb>\w+))?)?$/

const VERBS = ['generateContent', 'streamGenerateContent', 'countTokens'] as const
