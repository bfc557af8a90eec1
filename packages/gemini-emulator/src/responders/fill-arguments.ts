import type { FunctionDeclaration } from '../wire/content.ts'

/**
 * Returns arguments that fit the schema of a function: its examples, defaults and enumerations, the numbers and the texts of a message
 * in their order (quoted texts, ids such as A17, names such as Alice), and otherwise the smallest values that the schema allows.
 */
export function fillArguments(
  {
    parameters,
    parametersJsonSchema,
  }: Pick<FunctionDeclaration, 'parameters' | 'parametersJsonSchema'>,
  message: string,
): Record<string, unknown> {
  const schema = parametersJsonSchema ?? parameters
  if (!isRecord(schema)) return {}
  const values: Values = {
    root: schema,
    message: message.toLowerCase(),
    numbers: [...message.matchAll(NUMBER)].map(([text]) => Number(text)),
    texts: [...message.matchAll(TEXT)].map(([word, quoted]) => quoted ?? word),
  }
  const filled = fill(schema, { name: '', values, depth: 0 })
  return isRecord(filled) ? filled : {}
}

/** A number that is not part of a word. Words of Japanese and Chinese touch numbers. */
const NUMBER = /(?<![\p{Script=Latin}\d.-])-?\d+(?:\.\d+)?(?![\p{Script=Latin}\d])/gu

/** A quoted text, a word with letters and digits, or a capitalised word that does not start a sentence. */
const TEXT =
  /["“「]([^"”」]+)["”」]|(?<![\w@-])(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[\w-]+|(?<=[\p{Ll}\d,] )\p{Lu}[\p{L}'-]+/gu

/** The values of a message that are not used yet. */
interface Values {
  readonly root: Schema
  readonly message: string
  readonly numbers: number[]
  readonly texts: string[]
}

type Schema = Readonly<Record<string, unknown>>

interface Place {
  /** The name of the property. */
  readonly name: string
  readonly values: Values
  readonly depth: number
}

/** A schema may contain itself. */
const MAX_DEPTH = 8

function fill(given: unknown, place: Place): unknown {
  if (!isRecord(given) || place.depth > MAX_DEPTH) return null
  const schema = resolve(given, place.values.root)
  const examples: unknown = schema['examples']
  const [fixed] = [
    schema['const'],
    schema['example'],
    Array.isArray(examples) ? (examples[0] as unknown) : undefined,
    schema['default'],
  ].filter((value) => value !== undefined)
  const choices: unknown = schema['enum']
  if (Array.isArray(choices)) return choose(choices, place.values) ?? fixed
  switch (typeOf(schema)) {
    case 'object':
      return fillObject(schema, place)
    case 'array':
      return fixed ?? fillArray(schema, place)
    case 'number':
    case 'integer':
      return takeNumber(schema, place.values) ?? fixed ?? smallest(schema)
    case 'boolean':
      return fixed ?? false
    case 'null':
      return null
    default:
      return takeText(schema, place.values) ?? fixed ?? textOf(schema, place.name)
  }
}

/** Follows a reference, or takes the first alternative. */
function resolve(schema: Schema, root: Schema): Schema {
  const reference = schema['$ref']
  if (typeof reference === 'string') {
    let target: unknown = root
    for (const key of reference.replace(/^#\//, '').split('/'))
      target = isRecord(target) ? target[key] : undefined
    return isRecord(target) ? target : {}
  }
  const alternatives: unknown = schema['anyOf'] ?? schema['oneOf'] ?? schema['allOf']
  const first: unknown = Array.isArray(alternatives) ? alternatives[0] : undefined
  return isRecord(first) ? { ...schema, ...first } : schema
}

/** Gemini writes the names of types in capitals. */
function typeOf({ type, properties, items }: Schema): string {
  const name: unknown = Array.isArray(type) ? type[0] : type
  if (typeof name === 'string') return name.toLowerCase()
  if (properties !== undefined) return 'object'
  return items === undefined ? 'string' : 'array'
}

/** Fills the properties that are required. */
function fillObject(schema: Schema, { values, depth }: Place): Record<string, unknown> {
  const { properties, required } = schema
  if (!isRecord(properties)) return {}
  const needed = Array.isArray(required) ? required.map(String) : []
  return Object.fromEntries(
    needed.map((name) => [name, fill(properties[name], { name, values, depth: depth + 1 })]),
  )
}

function fillArray(schema: Schema, { name, values, depth }: Place): unknown[] {
  const length = Math.max(1, Number(schema['minItems'] ?? 0))
  return Array.from({ length }, () => fill(schema['items'], { name, values, depth: depth + 1 }))
}

function choose(choices: readonly unknown[], { message }: Values): unknown {
  const said = choices.find((choice) => message.includes(String(choice).toLowerCase()))
  return said ?? choices[0]
}

/** Takes the next number of the message, if the schema allows it. */
function takeNumber(schema: Schema, { numbers }: Values): number | undefined {
  const [next] = numbers
  if (next === undefined || !isAllowed(next, schema)) return undefined
  numbers.shift()
  return next
}

/** Takes the next text of the message, unless the schema wants a date, an address or the like. */
function takeText({ format }: Schema, { texts }: Values): string | undefined {
  return format === undefined ? texts.shift() : undefined
}

function isAllowed(value: number, schema: Schema): boolean {
  if (typeOf(schema) === 'integer' && !Number.isInteger(value)) return false
  const { minimum, maximum, exclusiveMinimum, exclusiveMaximum } = schema
  return (
    value >= numberOr(minimum, -Infinity) &&
    value <= numberOr(maximum, Infinity) &&
    value > numberOr(exclusiveMinimum, -Infinity) &&
    value < numberOr(exclusiveMaximum, Infinity)
  )
}

function smallest(schema: Schema): number {
  const { minimum, exclusiveMinimum, maximum } = schema
  const lowest = numberOr(exclusiveMinimum, 0) + 1
  return Math.min(Math.max(lowest, numberOr(minimum, 1)), numberOr(maximum, Infinity))
}

function numberOr(value: unknown, otherwise: number): number {
  const number = typeof value === 'string' ? Number(value) : value
  return typeof number === 'number' && Number.isFinite(number) ? number : otherwise
}

const FORMATS: Readonly<Record<string, string>> = {
  date: '2030-01-01',
  'date-time': '2030-01-01T09:00:00Z',
  time: '09:00:00Z',
  email: 'someone@example.com',
  uri: 'https://example.com',
  uuid: '00000000-0000-4000-8000-000000000000',
}

/** Returns a text that a person recognises as a placeholder: the name of the property. */
function textOf({ format, minLength, maxLength }: Schema, name: string): string {
  const formatted = typeof format === 'string' ? FORMATS[format] : undefined
  if (formatted !== undefined) return formatted
  return (name || 'text').padEnd(numberOr(minLength, 0), '.').slice(0, numberOr(maxLength, 1_000))
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
