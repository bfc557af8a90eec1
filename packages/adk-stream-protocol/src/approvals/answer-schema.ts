import { z } from 'zod'

import { isRecord } from '../protocol/guards.ts'

/** A JSON Schema that `findAnswerFault` checks completely. */
export type AnswerSchema = Readonly<Record<string, unknown>>

/** The limits of a schema. A model or another server wrote it. */
const MAX_LENGTH = 16_000
const MAX_DEPTH = 16
/** The maximum of subschemas times values of the answer, which bounds the time of a check. */
const MAX_CHECKS = 500_000

/**
 * Returns the part of a JSON Schema that forms show and the server checks. Removes `pattern`, because a regular expression can take
 * forever, and keywords that only describe. Returns the fault of a schema that is too large or that cannot be checked completely.
 */
export function readAnswerSchema(
  schema: unknown,
): { readonly schema: AnswerSchema } | { readonly fault: string } {
  try {
    if (JSON.stringify(schema).length > MAX_LENGTH)
      return { fault: `The schema is longer than ${MAX_LENGTH} characters of JSON.` }
    const kept = readSchema(schema, 0)
    z.fromJSONSchema(withoutDefaults(kept))
    return { schema: kept }
  } catch (error) {
    return { fault: error instanceof SchemaFault ? error.message : 'The schema is not valid.' }
  }
}

/** Returns what is wrong with an answer, with the name of the field. Returns undefined if the answer fits the schema. */
export function findAnswerFault(schema: AnswerSchema, answer: unknown): string | undefined {
  if (hasForbiddenName(answer)) return 'The answer contains a field named `__proto__`.'
  if (countValues(schema) * countValues(answer) > MAX_CHECKS)
    return 'The answer contains too many values.'
  const parsed = z.fromJSONSchema(withoutDefaults(schema)).safeParse(answer)
  if (parsed.success) return undefined
  const [issue] = parsed.error.issues
  const field = issue?.path.join('.') ?? ''
  const subject = field === '' ? 'The answer' : `The field \`${field}\` of the answer`
  return `${subject} does not match what was asked. ${issue?.message ?? 'Invalid input'}.`
}

class SchemaFault extends Error {
  override readonly name = 'SchemaFault'
}

const TEXTS = ['title', 'description', 'format'] as const
const NUMBERS = [
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'multipleOf',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
] as const
const VALUES = ['const', 'default', 'uniqueItems'] as const
const LISTS = ['anyOf', 'oneOf', 'allOf', 'prefixItems'] as const
/** Keywords that restrict the answer in ways that this server does not check. `$ref` could make a check take exponential time. */
const UNCHECKED = new Set([
  '$ref',
  '$dynamicRef',
  'not',
  'if',
  'then',
  'else',
  'contains',
  'dependentRequired',
  'dependentSchemas',
  'patternProperties',
  'propertyNames',
  'unevaluatedItems',
  'unevaluatedProperties',
])

function readSchema(schema: unknown, depth: number): Record<string, unknown> {
  // `true` allows every value.
  if (schema === true) return {}
  if (!isRecord(schema)) throw new SchemaFault('A schema must be an object.')
  if (depth > MAX_DEPTH)
    throw new SchemaFault(`The schema is nested deeper than ${MAX_DEPTH} levels.`)
  const unchecked = Object.keys(schema).find((keyword) => UNCHECKED.has(keyword))
  if (unchecked !== undefined)
    throw new SchemaFault(`The keyword \`${unchecked}\` is not supported in a response schema.`)
  const { properties, items, required } = schema
  const kept = {
    ...readType(schema),
    ...readKeywords(schema),
    ...readSubschemas(schema, depth + 1),
  }
  // A schema with fields means an object, even if it does not say so.
  if (kept['type'] === undefined && isRecord(properties)) kept['type'] = 'object'
  else if (kept['type'] === undefined && isRecord(items)) kept['type'] = 'array'
  if (Array.isArray(required)) kept['required'] = readRequired(required, properties)
  return kept
}

/** Returns the keywords with plain values. */
function readKeywords(schema: AnswerSchema): Record<string, unknown> {
  const kept: Record<string, unknown> = {}
  for (const name of TEXTS) if (typeof schema[name] === 'string') kept[name] = schema[name]
  for (const name of NUMBERS) if (Number.isFinite(schema[name])) kept[name] = schema[name]
  for (const name of VALUES) if (schema[name] !== undefined) kept[name] = schema[name]
  return kept
}

/** Returns the keywords that contain schemas. */
function readSubschemas(schema: AnswerSchema, depth: number): Record<string, unknown> {
  const { properties, items, additionalProperties: others } = schema
  const kept: Record<string, unknown> = {}
  for (const name of LISTS) {
    const list: unknown = schema[name]
    if (Array.isArray(list)) kept[name] = list.map((item) => readSchema(item, depth))
  }
  if (isRecord(properties)) {
    const inherited = Object.keys(properties).find((name) => name in Object.prototype)
    if (inherited !== undefined)
      throw new SchemaFault(`A field cannot have the name \`${inherited}\`.`)
    kept['properties'] = mapValues(properties, (own) => readSchema(own, depth))
  }
  if (isRecord(items)) kept['items'] = readSchema(items, depth)
  if (others !== undefined)
    kept['additionalProperties'] = others === false ? false : readSchema(others, depth)
  return kept
}

function mapValues(
  record: Readonly<Record<string, unknown>>,
  map: (value: unknown) => unknown,
): Record<string, unknown> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, map(value)]))
}

function readRequired(required: readonly unknown[], properties: unknown): string[] {
  const names = required.filter((name) => typeof name === 'string')
  const unknown = names.find((name) => !isRecord(properties) || !Object.hasOwn(properties, name))
  if (unknown === undefined) return names
  throw new SchemaFault(`\`required\` names the field \`${unknown}\`, which \`properties\` lacks.`)
}

/** Returns the type and the allowed values. Models also write Gemini's names of types, in capitals. */
function readType(schema: AnswerSchema): Record<string, unknown> {
  const { type, nullable } = schema
  const names = (Array.isArray(type) ? type : [type]).flatMap((name) =>
    typeof name === 'string' ? [name.toLowerCase()] : [],
  )
  if (nullable === true && names.length > 0 && !names.includes('null')) names.push('null')
  return {
    ...(names.length > 0 && { type: names.length === 1 ? names[0] : names }),
    ...readOptions(schema),
  }
}

function readOptions({ nullable, enum: values, enumNames }: AnswerSchema): Record<string, unknown> {
  if (!Array.isArray(values) || values.length === 0) return {}
  const titles: readonly unknown[] = Array.isArray(enumNames) ? enumNames : []
  const isNamed =
    titles.length === values.length && titles.every((title) => typeof title === 'string')
  const options: readonly unknown[] = values
  return {
    enum: nullable === true ? [...options, null] : [...options],
    // MCP servers of earlier versions name their options like this.
    ...(isNamed && { enumNames: [...titles] }),
  }
}

/** A default is a proposal for the form. For the check, a required field must be in the answer. */
function withoutDefaults(schema: AnswerSchema): Record<string, unknown> {
  const rest: Record<string, unknown> = { ...schema }
  delete rest['default']
  for (const name of ['items', 'additionalProperties'])
    if (isRecord(rest[name])) rest[name] = withoutDefaults(rest[name])
  for (const name of LISTS) {
    const list: unknown = rest[name]
    if (Array.isArray(list)) rest[name] = list.filter(isRecord).map(withoutDefaults)
  }
  const { properties } = rest
  if (isRecord(properties))
    rest['properties'] = mapValues(properties, (own) =>
      isRecord(own) ? withoutDefaults(own) : own,
    )
  return rest
}

function hasForbiddenName(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return false
  return Object.entries(value).some(([name, own]) => name === '__proto__' || hasForbiddenName(own))
}

function countValues(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1
  return Object.values(value).reduce<number>((sum, own) => sum + countValues(own), 1)
}
