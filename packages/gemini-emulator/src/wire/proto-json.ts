import type { z } from 'zod'

import { badPayload, type FieldViolation, type GoogleError } from './google-error.ts'

type JsonObject = Readonly<Record<string, unknown>>

/**
 * Normalises JSON: converts snake_case to camelCase, and a single message to a list where a list is expected. Google's
 * servers accept both, and Google's examples use both.
 */
export function canonicalJson(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(canonicalJson)
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, field]) => {
      const name = camelCase(key)
      if (FREE_FORM.has(name)) return [name, field]
      const inner = canonicalJson(field)
      // In a context update, `tools` is an object around the list `tools`.
      const isSingle = REPEATED.has(name) && isObject(inner) && !(name in inner)
      return [name, isSingle ? [inner] : inner]
    }),
  )
}

/** Returns a violation, with Google's message, for each unknown field. */
export function unknownNames(
  value: unknown,
  known: ReadonlySet<string>,
  path: string,
): readonly FieldViolation[] {
  if (!isObject(value)) return []
  return Object.keys(value)
    .filter((name) => !known.has(camelCase(name)))
    .map((name) => ({
      ...(path && { field: path }),
      description: `Invalid JSON payload received. Unknown name ${JSON.stringify(name)}${path && ` at '${path}'`}: Cannot find field.`,
    }))
}

/** Converts zod's issues to Google's error for values of the wrong type. */
export function wrongValue(error: z.ZodError, payload: unknown): GoogleError {
  return badPayload(
    error.issues.map((issue) => {
      const field = protoPath(issue.path)
      const value = issue.path.reduce<unknown>(
        (inner, key) => (isObject(inner) || Array.isArray(inner) ? Reflect.get(inner, key) : inner),
        payload,
      )
      const type = issue.code === 'invalid_type' ? PROTO_TYPES[issue.expected] : undefined
      return {
        field,
        description: `Invalid value at '${field}'${type ? ` (${type})` : ''}, ${JSON.stringify(value)}`,
      }
    }),
  )
}

/** Formats a path like `contents[0].parts[1].function_call`. */
export function protoPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, key) => {
    if (typeof key === 'number') return `${text}[${key}]`
    return `${text}${text && '.'}${snakeCase(String(key))}`
  }, '')
}

function camelCase(name: string): string {
  return name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

/** Whether a value is an object but not an array. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

// Their keys are data of the client, not field names.
const FREE_FORM: ReadonlySet<string> = new Set([
  'args',
  'response',
  'parameters',
  'parametersJsonSchema',
  'responseSchema',
  'responseJsonSchema',
  'partMetadata',
])

const REPEATED: ReadonlySet<string> = new Set([
  'contents',
  'parts',
  'tools',
  'functionDeclarations',
  'safetySettings',
])

const PROTO_TYPES: Readonly<Record<string, string>> = {
  string: 'TYPE_STRING',
  boolean: 'TYPE_BOOL',
  number: 'TYPE_DOUBLE',
}
