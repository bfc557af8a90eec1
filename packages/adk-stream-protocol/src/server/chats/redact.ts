import { isRecord } from '../../protocol/guards.ts'

const REDACTED = '[redacted]'
/** Maximum length of one text. */
const MAX_TEXT = 8_000
const MAX_DEPTH = 24

/** Names of fields whose value is a secret. */
const SECRET_NAME =
  /^(?:authorization|proxy-authorization|cookie|set-cookie|.*(?:api[-_]?key|secret|password|passwd|passphrase|credentials?|private[-_]?key|(?:access|refresh|id|auth|session|bearer)[-_]?token))$/i

/** Texts that are secrets wherever they are. */
const SECRET_TEXTS: readonly RegExp[] = [
  // Google, OpenAI and similar, GitHub, Slack, AWS.
  /\bAIza[\w-]{30,}/g,
  /\bya29\.[\w.-]{20,}/g,
  /\bsk-[\w-]{16,}/g,
  /\bgh[pousr]_\w{20,}/g,
  /\bgithub_pat_\w{20,}/g,
  /\bxox[abprs]-[\w-]{10,}/g,
  /\bAKIA[\dA-Z]{16}\b/g,
  // JSON Web Tokens, and keys in PEM.
  /\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/g,
  /-----BEGIN [A-Z ]*PRIVATE KEY-----[^]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g,
  /(?<=\b(?:bearer|basic)\s+)[\w.~+/=-]{12,}/gi,
  // Passwords in URLs.
  /(?<=\b[a-z][\w+.-]*:\/\/[^\s/:@]*:)[^\s/@]+(?=@)/gi,
]

/** Returns a copy as JSON has it, without secrets and without the content of files. Long texts are cut off. */
export function redact(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return redactText(value)
  if (typeof value === 'bigint') return String(value)
  if (typeof value === 'function' || typeof value === 'symbol') return undefined
  if (typeof value !== 'object' || value === null) return value
  if (depth > MAX_DEPTH) return '[too deep]'
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`
  if (Array.isArray(value)) return value.map((each) => redact(each, depth + 1))
  if (!isRecord(value)) return String(value)
  const isFile = typeof value['mimeType'] === 'string' && typeof value['data'] === 'string'
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, each]): [string, unknown][] => {
      if (each === undefined) return []
      if (isFile && name === 'data') return [[name, `[${String(each).length} characters]`]]
      if (SECRET_NAME.test(name) && isSecretValue(each)) return [[name, REDACTED]]
      return [[name, redact(each, depth + 1)]]
    }),
  )
}

/** Whether a value can be a secret. An object is none: it may be the JSON Schema of a field that is named like a secret. */
function isSecretValue(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'number' || Array.isArray(value)
}

function redactText(text: string): string {
  const safe = SECRET_TEXTS.reduce((rest, secret) => rest.replaceAll(secret, REDACTED), text)
  if (safe.length <= MAX_TEXT) return safe
  return `${safe.slice(0, MAX_TEXT)}… [${safe.length - MAX_TEXT} more characters]`
}
