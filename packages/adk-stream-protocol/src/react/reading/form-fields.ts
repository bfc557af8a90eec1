import { isRecord } from '../../protocol/guards.ts'
import type { PreviewAmount } from '../../protocol/preview.ts'
import type { Arguments } from './call.ts'

type Schema = Readonly<Record<string, unknown>>

/** A form field of an argument, with the limits of its schema. Its value is text, except for booleans. */
export type Field = {
  /** Unique in the form. For a field of an object inside the value: its path, joined with dots. */
  readonly name: string
  /** Where the value belongs, if it is inside an object. Default: `[name]`. */
  readonly path?: readonly string[]
  /** The text of the schema for the field. Default: the name. */
  readonly label?: string
  readonly description?: string
  readonly rules: Rules
} & (
  | {
      /** `long` is a text of several lines. `list` has one item per line. */
      readonly kind: 'text' | 'long' | 'number' | 'json' | 'date' | 'time' | 'select' | 'list'
      readonly value: string
    }
  | { readonly kind: 'boolean'; readonly value: boolean }
)

/** What the schema says about an argument. */
export interface Rules {
  readonly required: boolean
  /** Whether the call has this argument. An empty field of another one is left out. */
  readonly isGiven: boolean
  readonly isInteger?: boolean
  readonly min?: number
  readonly max?: number
  /** Whether the limit itself is not allowed. */
  readonly above?: number
  readonly below?: number
  readonly step?: number
  /** How much of the amount there is, as the preview says. */
  readonly available?: number
  /** Up to which amount this person decides alone, as the preview says. */
  readonly alone?: number
  readonly minLength?: number
  readonly maxLength?: number
  readonly pattern?: string
  readonly options?: readonly unknown[]
  /** What the form shows for each option. Default: the option itself. */
  readonly optionNames?: readonly string[]
  readonly minItems?: number
  readonly maxItems?: number
  /** The schema of the items of a list. */
  readonly items?: Schema
}

/** Returns one form field per argument: by its schema, and else by its value. */
export function toFields(args: Arguments, schema?: Schema, locale = 'en'): Field[] {
  const properties = isRecord(schema?.['properties']) ? schema['properties'] : {}
  const required = Array.isArray(schema?.['required']) ? (schema['required'] as unknown[]) : []
  const names = [...new Set([...Object.keys(args), ...Object.keys(properties)])]
  return names.map((name) => {
    const own = readOwnSchema(properties[name])
    const isGiven = Object.hasOwn(args, name)
    return toField(name, isGiven ? args[name] : own['default'], {
      own,
      locale,
      // Without a schema, nothing can be left out.
      rules: { required: schema ? required.includes(name) : true, isGiven, ...readRules(own) },
    })
  })
}

/** Returns the fields with the values that were typed before. Their schema may have arrived later. */
export function keepValues(
  fields: readonly Field[],
  typed: readonly Field[] = [],
): readonly Field[] {
  return fields.map((field): Field => {
    const value = typed.find(({ name }) => name === field.name)?.value
    if (field.kind === 'boolean') return typeof value === 'boolean' ? { ...field, value } : field
    return typeof value === 'string' ? { ...field, value } : field
  })
}

/**
 * Limits the field of a preview's amount to what is available, and to the decimals of its currency. The field is the only number that has
 * the value of the amount.
 */
export function limitToAvailable(
  fields: readonly Field[],
  args: Arguments,
  amount: PreviewAmount | undefined,
): readonly Field[] {
  const names = Object.keys(args).filter((name) => args[name] === amount?.value)
  if (!amount || names.length !== 1) return fields
  const { available, currency, aloneUpTo: alone } = amount
  const unit = toSmallestUnit(currency)
  return fields.map((field): Field => {
    if (field.kind !== 'number' || field.name !== names[0]) return field
    const { step = unit, available: _before, alone: _alone, ...rules } = field.rules
    const limits = {
      ...(step !== undefined && { step }),
      ...(available !== undefined && { available }),
      ...(alone !== undefined && { alone }),
    }
    return { ...field, rules: { ...rules, ...limits } }
  })
}

/** Returns 0.01 for a currency with cents. Returns undefined for a text that is not the code of a currency. */
function toSmallestUnit(currency: string): number | undefined {
  try {
    const format = new Intl.NumberFormat('en', { style: 'currency', currency })
    return Number(`1e-${format.resolvedOptions().maximumFractionDigits}`)
  } catch {
    return undefined
  }
}

/** The name of the only field of an answer that is not an object. */
export const ANSWER_FIELD = 'answer'

/** How deep the objects of an answer are shown as fields. Deeper ones are shown as JSON. */
const MAX_FIELD_DEPTH = 4

/** A text with a higher limit gets several lines. */
const LONG_TEXT = 250

/** Returns the form fields of the answer to a question: one for each property, or a single one if the answer is not an object. */
export function toAnswerFields(schema: Schema | undefined, locale = 'en'): Field[] {
  if (isObjectSchema(schema)) return flattenFields(schema, [], { required: true, locale })
  const own = readOwnSchema(schema ?? { type: 'string' })
  return [toAnswerField([ANSWER_FIELD], own, { required: true, locale })]
}

/** Returns the answer that the fields of `toAnswerFields` contain. */
export function toAnswer(schema: Schema | undefined, args: Arguments): unknown {
  return isObjectSchema(schema) ? args : args[ANSWER_FIELD]
}

interface AnswerFieldOptions {
  readonly required: boolean
  readonly locale: string
}

function flattenFields(
  schema: Schema,
  path: readonly string[],
  { required, locale }: AnswerFieldOptions,
): Field[] {
  const properties = isRecord(schema['properties']) ? schema['properties'] : {}
  const names = Array.isArray(schema['required']) ? (schema['required'] as unknown[]) : []
  return Object.entries(properties).flatMap(([name, property]) => {
    const own = readOwnSchema(property)
    const options = { required: required && names.includes(name), locale }
    const inner = [...path, name]
    return isObjectSchema(own) && inner.length < MAX_FIELD_DEPTH
      ? flattenFields(own, inner, options)
      : [toAnswerField(inner, own, options)]
  })
}

function toAnswerField(
  path: readonly string[],
  own: Schema,
  { required, locale }: AnswerFieldOptions,
): Field {
  const rules = { required, isGiven: false, ...readRules(own) }
  const field = toField(path.join('.'), own['default'], { own, rules, locale })
  const { title, description } = own
  return {
    ...field,
    path,
    ...(typeof title === 'string' && { label: title }),
    ...(typeof description === 'string' && { description }),
  }
}

function isObjectSchema(schema: Schema | undefined): schema is Schema {
  return schema?.['type'] === 'object' && isRecord(schema['properties'])
}

/** Returns the field of a value: by the type of its schema, and else by its own type. */
export function toField(name: string, value: unknown, options: FieldOptions): Field {
  const { own, rules } = options
  const base = { name, rules }
  // Not an empty text, and not a missing value.
  if (value === null) return { ...base, kind: 'json', value: 'null' }
  if (rules.options) return { ...base, kind: 'select', value: String(value ?? '') }
  const type = own['type'] ?? (value === undefined ? 'string' : typeof value)
  if (type === 'boolean') return { ...base, kind: 'boolean', value: value === true }
  const input = toInput(type, value, options)
  if (input) return { ...base, ...input }
  const json = value === undefined ? '' : JSON.stringify(value, null, 2)
  return { ...base, kind: 'json', value: json }
}

interface FieldOptions {
  readonly own: Schema
  readonly rules: Rules
  readonly locale: string
}

type Input = Pick<Exclude<Field, { kind: 'boolean' }>, 'kind' | 'value'>

/** Returns the input for a missing value of a type, or for a value of this type. Returns undefined if only JSON can express the value. */
function toInput(type: unknown, value: unknown, options: FieldOptions): Input | undefined {
  const { rules, locale } = options
  if (type === 'string') return toTextInput(value, options)
  if (type === 'array' && value === undefined && isLineSchema(rules.items))
    return { kind: 'list', value: '' }
  if (type !== 'number' && type !== 'integer') return undefined
  if (value === undefined) return { kind: 'number', value: '' }
  return typeof value === 'number' ? { kind: 'number', value: write(value, locale) } : undefined
}

function toTextInput(value: unknown, { own: { format }, rules }: FieldOptions): Input | undefined {
  const text = value === undefined ? '' : value
  if (typeof text !== 'string') return undefined
  if (format === 'date' && (text === '' || isDay(text))) return { kind: 'date', value: text }
  // The input of a browser shows a local time, so a given time is edited as text.
  if (format === 'date-time' && value === undefined) return { kind: 'time', value: '' }
  const isLong = rules.maxLength !== undefined && rules.maxLength > LONG_TEXT
  return { kind: isLong ? 'long' : 'text', value: text }
}

/** Whether an item of a list fits into a line. */
function isLineSchema(items: Schema | undefined): boolean {
  if (!items) return false
  const { type } = items
  return readOptions(items) !== undefined || ['string', 'number', 'integer'].includes(String(type))
}

/** Returns the schema of a value that may be null without the null. */
function readOwnSchema(schema: unknown): Schema {
  if (!isRecord(schema)) return {}
  const options = schema['anyOf'] ?? schema['oneOf']
  const own = Array.isArray(options)
    ? (options as unknown[]).filter((each) => isRecord(each) && each['type'] !== 'null')
    : []
  const [only] = own
  return own.length === 1 && isRecord(only) ? { ...schema, ...only } : schema
}

export function readRules(own: Schema): Partial<Rules> {
  const limits = {
    min: own['minimum'],
    max: own['maximum'],
    above: own['exclusiveMinimum'],
    below: own['exclusiveMaximum'],
    step: own['multipleOf'],
    minLength: own['minLength'],
    maxLength: own['maxLength'],
    minItems: own['minItems'],
    maxItems: own['maxItems'],
  }
  const numbers = Object.entries(limits).filter(
    ([, limit]) => typeof limit === 'number' && Math.abs(limit) < Number.MAX_SAFE_INTEGER,
  )
  return {
    ...(Object.fromEntries(numbers) as Partial<Rules>),
    ...(own['type'] === 'integer' && { isInteger: true }),
    ...(typeof own['pattern'] === 'string' && { pattern: own['pattern'] }),
    ...readOptions(own),
    ...(isRecord(own['items']) && { items: own['items'] }),
  }
}

/** Returns what a form shows for an allowed value. Undefined if the schema gives it no name. */
export function findOptionName(schema: Schema, value: unknown): string | undefined {
  const { options = [], optionNames } = readOptions(readOwnSchema(schema)) ?? {}
  return optionNames?.[options.indexOf(value)]
}

/** Reads the allowed values: an `enum`, or alternatives with a `const` and a title each. */
function readOptions(own: Schema): Pick<Rules, 'options' | 'optionNames'> | undefined {
  const values: unknown = own['enum']
  if (Array.isArray(values)) {
    // MCP servers of earlier versions have the names in a list of their own.
    const names: unknown = own['enumNames']
    const isNamed = Array.isArray(names) && names.length <= values.length
    return {
      options: values as unknown[],
      ...(isNamed && { optionNames: (names as unknown[]).map(String) }),
    }
  }
  const alternatives = own['oneOf'] ?? own['anyOf']
  if (!Array.isArray(alternatives) || alternatives.length === 0) return undefined
  const named = (alternatives as unknown[]).filter(isRecord)
  if (!named.every((each) => 'const' in each)) return undefined
  return {
    options: named.map((each) => each['const']),
    optionNames: named.map((each) => String(each['title'] ?? each['const'])),
  }
}

/**
 * Parses a number as a person writes it: with full-width digits, and with the grouping and the decimal sign of the language. Returns
 * undefined if it is not a number.
 */
export function parseNumber(text: string, locale: string): number | undefined {
  const { group, decimal } = readSigns(locale)
  const plain = text.normalize('NFKC').trim().replace('−', '-')
  const grouped = new RegExp(
    String.raw`^[+-]?\d{1,3}(?:${escape(group)}\d{3})+(?:${escape(decimal)}\d+)?$`,
  )
  const whole = grouped.test(plain) ? plain.replaceAll(group, '') : plain
  const ascii = whole.replace(decimal, '.')
  if (!/^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i.test(ascii)) return undefined
  const value = Number(ascii)
  return Number.isFinite(value) ? value : undefined
}

function escape(sign: string): string {
  return sign.replaceAll(/[.*+?^${}()|[\]\\]/g, String.raw`\$&`)
}

function readSigns(locale: string): { group: string; decimal: string } {
  const parts = new Intl.NumberFormat(locale).formatToParts(1_234_567.8)
  const find = (type: string, fallback: string): string =>
    (parts.find((part) => part.type === type)?.value ?? fallback).normalize('NFKC')
  return { group: find('group', ','), decimal: find('decimal', '.') }
}

/** Writes a number with all its digits, in the form that `parseNumber` reads. */
function write(value: number, locale: string): string {
  const shown = new Intl.NumberFormat(locale, {
    useGrouping: false,
    maximumSignificantDigits: 21,
    numberingSystem: 'latn',
  }).format(value)
  return parseNumber(shown, locale) === value ? shown : String(value)
}

export function isDay(value: unknown): value is string {
  return (
    typeof value === 'string' &&
    /^\d{4}-\d{2}-\d{2}$/.test(value) &&
    !Number.isNaN(Date.parse(value))
  )
}
