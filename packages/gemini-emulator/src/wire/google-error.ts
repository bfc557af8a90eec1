/** An error in the format of Google's APIs. */
export class GoogleError extends Error {
  override readonly name = 'GoogleError'
  readonly httpStatus: number
  readonly details: readonly ErrorDetail[]

  constructor(httpStatus: number, message: string, details: readonly ErrorDetail[] = []) {
    super(message)
    this.httpStatus = httpStatus
    this.details = details
  }

  /** The response body. */
  toJSON() {
    return {
      error: {
        code: this.httpStatus,
        message: this.message,
        status: STATUS_NAMES[this.httpStatus] ?? 'UNKNOWN',
        ...(this.details.length > 0 && { details: this.details }),
      },
    }
  }
}

export interface ErrorDetail {
  readonly '@type': string
  readonly [field: string]: unknown
}

export function invalidArgument(message: string): GoogleError {
  return new GoogleError(400, message)
}

/** Invalid JSON fields, with one violation for each. */
export function badPayload(violations: readonly FieldViolation[]): GoogleError {
  const message = violations.map((violation) => violation.description).join('\n')
  return new GoogleError(400, message, [
    { '@type': 'type.googleapis.com/google.rpc.BadRequest', fieldViolations: violations },
  ])
}

export interface FieldViolation {
  readonly field?: string
  readonly description: string
}

export function missingKey(): GoogleError {
  return new GoogleError(
    403,
    "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API.",
  )
}

export function invalidKey(): GoogleError {
  const message = 'API key not valid. Please pass a valid API key.'
  return new GoogleError(400, message, [
    {
      '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
      reason: 'API_KEY_INVALID',
      domain: 'googleapis.com',
      metadata: { service: 'generativelanguage.googleapis.com' },
    },
    { '@type': 'type.googleapis.com/google.rpc.LocalizedMessage', locale: 'en-US', message },
  ])
}

export function modelNotFound(model: string, version: string, method: string): GoogleError {
  return new GoogleError(
    404,
    `models/${model} is not found for API version ${version}, or is not supported for ${method}. Call ListModels to see the list of available models and their supported methods.`,
  )
}

/** The error of a `fail` action. Google's message is the default, and a 429 has Google's quota details. */
export function scriptedError(action: ScriptedError, model: string): GoogleError {
  if (action.status !== 429) {
    return new GoogleError(
      action.status,
      action.message || DEFAULT_MESSAGES[action.status] || 'Unknown error',
    )
  }
  const retrySeconds = action.retryAfterSeconds ?? 1
  const message =
    action.message ||
    `You exceeded your current quota, please check your plan and billing details. For more information on this error, head to: https://ai.google.dev/gemini-api/docs/rate-limits.\nPlease retry in ${retrySeconds}s.`
  return new GoogleError(429, message, quotaDetails(model, retrySeconds))
}

export interface ScriptedError {
  readonly status: number
  readonly message: string
  readonly retryAfterSeconds?: number
}

function quotaDetails(model: string, retrySeconds: number): readonly ErrorDetail[] {
  return [
    {
      '@type': 'type.googleapis.com/google.rpc.QuotaFailure',
      violations: [
        {
          quotaMetric: 'generativelanguage.googleapis.com/generate_content_free_tier_requests',
          quotaId: 'GenerateRequestsPerMinutePerProjectPerModel-FreeTier',
          quotaDimensions: { location: 'global', model },
          quotaValue: '10',
        },
      ],
    },
    {
      '@type': 'type.googleapis.com/google.rpc.Help',
      links: [
        {
          description: 'Learn more about Gemini API quotas',
          url: 'https://ai.google.dev/gemini-api/docs/rate-limits',
        },
      ],
    },
    { '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: `${retrySeconds}s` },
  ]
}

const STATUS_NAMES: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  409: 'ABORTED',
  429: 'RESOURCE_EXHAUSTED',
  499: 'CANCELLED',
  500: 'INTERNAL',
  501: 'UNIMPLEMENTED',
  503: 'UNAVAILABLE',
  504: 'DEADLINE_EXCEEDED',
}

const DEFAULT_MESSAGES: Readonly<Record<number, string>> = {
  400: 'Request contains an invalid argument.',
  401: 'Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential.',
  403: 'The caller does not have permission',
  404: 'Requested entity was not found.',
  500: 'An internal error has occurred. Please retry or report in https://developers.generativeai.google/guide/troubleshooting',
  503: 'The model is overloaded. Please try again later.',
  504: 'The request timed out. Please try again.',
}
