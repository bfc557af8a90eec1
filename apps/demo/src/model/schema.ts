import type { FunctionDeclaration } from 'gemini-emulator'

/** A call that the model is about to make. */
export interface PlannedCall {
  readonly name: string
  readonly args: Readonly<Record<string, unknown>>
}

/** The parts of a declared schema that the model uses, read from Gemini's notation or JSON Schema. */
export interface Shape {
  readonly types: readonly string[]
  readonly options?: readonly unknown[]
  readonly minimum?: number
  readonly maximum?: number
  readonly exclusiveMinimum?: number
  readonly exclusiveMaximum?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly properties: ReadonlyMap<string, Shape>
  readonly required: readonly string[]
  readonly items?: Shape
}

/** Reads the shape of a function's arguments from `parameters` or `parametersJsonSchema`. */
export function shapeOf(declaration: FunctionDeclaration): Shape {
  return readShape(declaration.parametersJsonSchema ?? declaration.parameters, 0)
}

/** Matches arguments with a declared object: drops undeclared keys, coerces values, and lists missing and invalid ones. */
export function fitArguments(
  args: Readonly<Record<string, unknown>>,
  shape: Shape,
): { readonly args: Readonly<Record<string, unknown>>; readonly wrong: readonly string[] } {
  const fitted: [string, unknown][] = []
  const wrong: string[] = []
  for (const [key, property] of shape.properties) {
    const given = Object.hasOwn(args, key)
    const value = given ? coerce(args[key], property) : undefined
    if (value !== undefined) fitted.push([key, value])
    else if (given || shape.required.includes(key)) wrong.push(key)
  }
  wrong.push(...shape.required.filter((key) => !shape.properties.has(key)))
  // `fromEntries` defines own properties, so that the key `__proto__` is safe.
  return { args: Object.fromEntries(fitted), wrong }
}

const DEEPEST = 8
const UNTYPED: Shape = { types: [], properties: new Map(), required: [] }

function readShape(schema: unknown, depth: number): Shape {
  if (!isRecord(schema) || depth > DEEPEST) return UNTYPED
  const alternative = firstAlternative(schema)
  if (alternative !== undefined) return readShape(alternative, depth + 1)
  const properties = isRecord(schema['properties']) ? Object.entries(schema['properties']) : []
  return {
    types: typesOf(schema),
    ...optionsOf(schema),
    ...limitsOf(schema),
    properties: new Map(properties.map(([key, value]) => [key, readShape(value, depth + 1)])),
    required: strings(schema['required']),
    ...(schema['items'] !== undefined && { items: readShape(schema['items'], depth + 1) }),
  }
}

/** Returns the first alternative of `anyOf` or `oneOf` that is not null. Its values satisfy the complete schema. */
function firstAlternative(schema: Readonly<Record<string, unknown>>): unknown {
  const alternatives = schema['anyOf'] ?? schema['oneOf']
  if (!Array.isArray(alternatives)) return undefined
  return alternatives.find((each) => isRecord(each) && !typesOf(each).includes('null'))
}

function typesOf(schema: Readonly<Record<string, unknown>>): string[] {
  const type = schema['type']
  return (Array.isArray(type) ? strings(type) : strings([type])).map((name) => name.toLowerCase())
}

function optionsOf(schema: Readonly<Record<string, unknown>>): Pick<Shape, 'options'> {
  if (schema['const'] !== undefined) return { options: [schema['const']] }
  return Array.isArray(schema['enum']) ? { options: schema['enum'] } : {}
}

const LIMITS = [
  'minimum',
  'maximum',
  'exclusiveMinimum',
  'exclusiveMaximum',
  'minLength',
  'maxLength',
] as const

function limitsOf(schema: Readonly<Record<string, unknown>>): Pick<Shape, (typeof LIMITS)[number]> {
  const limits: { -readonly [key in (typeof LIMITS)[number]]?: number } = {}
  for (const key of LIMITS) {
    const value = schema[key]
    // Gemini sends lengths as strings, its JSON form of int64.
    const number = typeof value === 'string' ? Number(value) : value
    if (typeof number === 'number' && Number.isFinite(number)) limits[key] = number
  }
  return limits
}

/** Converts a value to the declared type. Returns undefined if that is impossible. */
function coerce(value: unknown, shape: Shape): unknown {
  const candidates =
    shape.types.length === 0 ? [value] : shape.types.map((type) => convert(value, type, shape))
  return candidates.find((candidate) => candidate !== undefined && allowed(candidate, shape))
}

function convert(value: unknown, type: string, shape: Shape): unknown {
  switch (type) {
    case 'string':
      return toText(value)
    case 'number':
      return toNumber(value)
    case 'integer': {
      const number = toNumber(value)
      return Number.isInteger(number) ? number : undefined
    }
    case 'boolean':
      return toBoolean(value)
    case 'null':
      return value === null ? null : undefined
    case 'array':
      return toArray(value, shape)
    case 'object':
      return toObject(value, shape)
    default:
      return value
  }
}

function toText(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : undefined
}

function toNumber(value: unknown): number | undefined {
  if (typeof value === 'number') return Number.isFinite(value) ? value : undefined
  if (typeof value !== 'string' || value.trim() === '') return undefined
  const number = Number(value.replaceAll(',', ''))
  return Number.isFinite(number) ? number : undefined
}

const BOOLEANS: ReadonlyMap<unknown, boolean> = new Map<unknown, boolean>([
  [true, true],
  [false, false],
  ['true', true],
  ['false', false],
  ['yes', true],
  ['no', false],
])

function toBoolean(value: unknown): boolean | undefined {
  return BOOLEANS.get(typeof value === 'string' ? value.toLowerCase() : value)
}

function toArray(value: unknown, shape: Shape): unknown[] | undefined {
  if (value === undefined || value === null) return undefined
  const items = shape.items ?? UNTYPED
  const given: unknown[] = Array.isArray(value) ? value : [value]
  const fitted = given.map((item) => coerce(item, items))
  return fitted.includes(undefined) ? undefined : fitted
}

function toObject(value: unknown, shape: Shape): unknown {
  if (!isRecord(value)) return undefined
  // An object without declared properties is free-form.
  if (shape.properties.size === 0) return shape.required.length === 0 ? value : undefined
  const { args, wrong } = fitArguments(value, shape)
  return wrong.length === 0 ? args : undefined
}

function allowed(value: unknown, shape: Shape): boolean {
  if (shape.options !== undefined && !shape.options.includes(value)) return false
  if (typeof value === 'number') return withinLimits(value, shape)
  if (typeof value === 'string')
    return within(Array.from(value).length, shape.minLength, shape.maxLength)
  return true
}

function withinLimits(value: number, shape: Shape): boolean {
  const above = value > (shape.exclusiveMinimum ?? -Infinity)
  const below = value < (shape.exclusiveMaximum ?? Infinity)
  return above && below && within(value, shape.minimum, shape.maximum)
}

function within(size: number, least = -Infinity, most = Infinity): boolean {
  return size >= least && size <= most
}

function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : []
}

/** Returns whether the value is an object and not an array. */
export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
