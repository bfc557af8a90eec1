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
  for (const keyword of Object.keys(schema))
    if (UNCHECKED.has(keyword))
      throw new SchemaFault(`The keyword \`${keyword}\` is not supported in a response schema.`)
  const { properties, items, additionalProperties: others, required } = schema
  const kept: Record<string, unknown> = { ...readType(schema) }
  for (const name of TEXTS) if (typeof schema[name] === 'string') kept[name] = schema[name]
  for (const name of NUMBERS)
    if (typeof schema[name] === 'number' && Number.isFinite(schema[name])) kept[name] = schema[name]
  for (const name of VALUES) if (schema[name] !== undefined) kept[name] = schema[name]
  for (const name of LISTS) {
    const list: unknown = schema[name]
    if (Array.isArray(list)) kept[name] = list.map((item) => readSchema(item, depth + 1))
  }
  if (isRecord(properties)) {
    const inherited = Object.keys(properties).find((name) => name in Object.prototype)
    if (inherited !== undefined)
      throw new SchemaFault(`A field cannot have the name \`${inherited}\`.`)
    kept['properties'] = Object.fromEntries(
      Object.entries(properties).map(([name, own]) => [name, readSchema(own, depth + 1)]),
    )
  }
  if (isRecord(items)) kept['items'] = readSchema(items, depth + 1)
  if (others !== undefined)
    kept['additionalProperties'] = others === false ? false : readSchema(others, depth + 1)
  // A schema with fields means an object, even if it does not say so.
  if (kept['type'] === undefined && isRecord(properties)) kept['type'] = 'object'
  else if (kept['type'] === undefined && isRecord(items)) kept['type'] = 'array'
  if (Array.isArray(required)) kept['required'] = readRequired(required, properties)
  return kept
}

function readRequired(required: readonly unknown[], properties: unknown): string[] {
  const names = required.filter((name) => typeof name === 'string')
  const unknown = names.find((name) => !isRecord(properties) || !Object.hasOwn(properties, name))
  if (unknown === undefined) return names
  throw new SchemaFault(`\`required\` names the field \`${unknown}\`, which \`properties\` lacks.`)
}

/** Returns the type and the allowed values. Models also write Gemini's names of types, in capitals. */
function readType(schema: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { type, nullable, enum: values, enumNames } = schema
  const names = (Array.isArray(type) ? type : [type]).flatMap((name) =>
    typeof name === 'string' ? [name.toLowerCase()] : [],
  )
  if (nullable === true && names.length > 0 && !names.includes('null')) names.push('null')
  const given: readonly unknown[] = Array.isArray(values) ? values : []
  const allowed = given.length > 0 ? [...given] : undefined
  const titles: readonly unknown[] = Array.isArray(enumNames) ? enumNames : []
  const isNamed =
    titles.length === allowed?.length && titles.every((title) => typeof title === 'string')
  if (allowed && nullable === true) allowed.push(null)
  return {
    ...(names.length > 0 && { type: names.length === 1 ? names[0] : names }),
    ...(allowed && { enum: allowed }),
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
    rest['properties'] = Object.fromEntries(
      Object.entries(properties).map(([name, own]) => [
        name,
        isRecord(own) ? withoutDefaults(own) : own,
      ]),
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
