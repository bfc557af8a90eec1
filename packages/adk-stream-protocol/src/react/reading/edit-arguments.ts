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
interface Rules {
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

/** Why a field is not valid. The labels describe it. */
export type FieldProblem =
  | { readonly type: 'required' | 'number' | 'integer' | 'json' | 'date' | 'option' | 'pattern' }
  | {
      readonly type:
        | 'min'
        | 'max'
        | 'above'
        | 'below'
        | 'step'
        | 'available'
        | 'minLength'
        | 'maxLength'
        | 'minItems'
        | 'maxItems'
      readonly limit: number
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
  const { available, currency } = amount
  const unit = toSmallestUnit(currency)
  return fields.map((field): Field => {
    if (field.kind !== 'number' || field.name !== names[0]) return field
    const { step = unit, available: _before, ...rules } = field.rules
    const limits = {
      ...(step !== undefined && { step }),
      ...(available !== undefined && { available }),
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

function toField(
  name: string,
  value: unknown,
  { own, rules, locale }: { own: Schema; rules: Rules; locale: string },
): Field {
  const base = { name, rules }
  // Not an empty text, and not a missing value.
  if (value === null) return { ...base, kind: 'json', value: 'null' }
  const type = own['type'] ?? (value === undefined ? 'string' : typeof value)
  if (rules.options) return { ...base, kind: 'select', value: String(value ?? '') }
  if (type === 'boolean') return { ...base, kind: 'boolean', value: value === true }
  const isEmpty = value === undefined
  if (type === 'number' || type === 'integer') {
    if (typeof value === 'number') return { ...base, kind: 'number', value: write(value, locale) }
    if (isEmpty) return { ...base, kind: 'number', value: '' }
  }
  if (type === 'string' && (isEmpty || typeof value === 'string')) {
    const isDate = own['format'] === 'date' && (isEmpty || value === '' || isDay(value))
    if (isDate) return { ...base, kind: 'date', value: value ?? '' }
    // The input of a browser shows a local time, so a given time is edited as text.
    if (own['format'] === 'date-time' && isEmpty) return { ...base, kind: 'time', value: '' }
    const isLong = rules.maxLength !== undefined && rules.maxLength > LONG_TEXT
    return { ...base, kind: isLong ? 'long' : 'text', value: value ?? '' }
  }
  if (type === 'array' && isEmpty && isLineSchema(rules.items))
    return { ...base, kind: 'list', value: '' }
  return { ...base, kind: 'json', value: isEmpty ? '' : JSON.stringify(value, null, 2) }
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

function readRules(own: Schema): Partial<Rules> {
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

type Reading =
  | { readonly state: 'valid'; readonly args: Arguments }
  | { readonly state: 'invalid'; readonly problems: ReadonlyMap<string, FieldProblem> }

/** Parses the form into arguments and keeps their types. Returns the problem of each field that is not valid. */
export function readFields(fields: readonly Field[], locale = 'en'): Reading {
  const entries: Entry[] = []
  const problems = new Map<string, FieldProblem>()
  for (const field of fields) {
    const read = readField(field, locale)
    if ('problem' in read) problems.set(field.name, read.problem)
    else if ('value' in read) entries.push([field.path ?? [field.name], read.value])
  }
  return problems.size > 0
    ? { state: 'invalid', problems }
    : { state: 'valid', args: toObject(entries) }
}

/** A value and its path. */
type Entry = readonly [path: readonly string[], value: unknown]

/** Builds an object from paths. Every name becomes an own property. */
function toObject(entries: readonly Entry[]): Arguments {
  const names = [...new Set(entries.map(([[name = '']]) => name))]
  return Object.fromEntries(
    names.map((name) => {
      const own = entries.filter(([[first]]) => first === name)
      const [[path, value] = [[], undefined]] = own
      const isLeaf = own.length === 1 && path.length <= 1
      return [name, isLeaf ? value : toObject(own.map(([[, ...rest], each]) => [rest, each]))]
    }),
  )
}

type FieldReading =
  | { readonly value: unknown }
  | { readonly problem: FieldProblem }
  | { readonly isLeftOut: true }

function readField(field: Field, locale: string): FieldReading {
  const { kind, value, rules } = field
  if (kind === 'boolean') return { value }
  if (value.trim() === '') return readEmpty(kind, value, rules)
  switch (kind) {
    case 'text':
    case 'long':
      return checkText(value, rules)
    case 'list':
      return readList(value, rules, locale)
    case 'time': {
      const time = new Date(value)
      return Number.isNaN(time.getTime())
        ? { problem: { type: 'date' } }
        : { value: time.toISOString() }
    }
    case 'number':
      return readNumber(value, rules, locale)
    case 'date':
      return isDay(value) ? { value } : { problem: { type: 'date' } }
    case 'select': {
      const option = rules.options?.find((each) => String(each) === value)
      return option === undefined ? { problem: { type: 'option' } } : { value: option }
    }
    case 'json':
      try {
        return { value: JSON.parse(value) as unknown }
      } catch {
        // The form shows the problem at the field.
        return { problem: { type: 'json' } }
      }
  }
}

/** Reads one item per line. Empty lines are ignored. */
function readList(
  value: string,
  { items = {}, minItems = 0, maxItems = Infinity }: Rules,
  locale: string,
): FieldReading {
  const lines = value.split('\n').flatMap((line) => (line.trim() === '' ? [] : [line.trim()]))
  const rules = { required: true, isGiven: true, ...readRules(items) }
  const read = lines.map((line) =>
    // Only the type of the item is taken from its field, the text is that of the line.
    readField(
      { ...toField('', undefined, { own: items, rules, locale }), value: line } as Field,
      locale,
    ),
  )
  const wrong = read.find((each) => 'problem' in each)
  if (wrong) return wrong
  if (lines.length < minItems) return { problem: { type: 'minItems', limit: minItems } }
  if (lines.length > maxItems) return { problem: { type: 'maxItems', limit: maxItems } }
  return { value: read.flatMap((each) => ('value' in each ? [each.value] : [])) }
}

function readEmpty(
  kind: Exclude<Field['kind'], 'boolean'>,
  value: string,
  { required, isGiven, minLength = 0 }: Rules,
): FieldReading {
  if (kind === 'text' || kind === 'long') {
    if (!required && !isGiven) return { isLeftOut: true }
    // An empty answer to a required field is a mistake. An argument that the model left empty is not.
    return minLength > 0 || !isGiven ? { problem: { type: 'required' } } : { value }
  }
  if (!required) return { isLeftOut: true }
  const types = { select: 'option', time: 'date', list: 'required' } as const
  return { problem: { type: kind in types ? types[kind as keyof typeof types] : (kind as 'json') } }
}

function checkText(value: string, { minLength, maxLength, pattern }: Rules): FieldReading {
  // JSON Schema counts characters, not UTF-16 units.
  const length = Array.from(value).length
  if (minLength !== undefined && length < minLength)
    return { problem: { type: 'minLength', limit: minLength } }
  if (maxLength !== undefined && length > maxLength)
    return { problem: { type: 'maxLength', limit: maxLength } }
  return isMatch(value, pattern) ? { value } : { problem: { type: 'pattern' } }
}

function isMatch(value: string, pattern: string | undefined): boolean {
  if (pattern === undefined) return true
  try {
    return new RegExp(pattern, 'u').test(value)
  } catch {
    // The server checks what this engine cannot.
    return true
  }
}

function readNumber(text: string, rules: Rules, locale: string): FieldReading {
  const value = parseNumber(text, locale)
  if (value === undefined) return { problem: { type: 'number' } }
  const { min, max, above, below, step, available, isInteger = false } = rules
  if (isInteger && !Number.isInteger(value)) return { problem: { type: 'integer' } }
  if (min !== undefined && value < min) return { problem: { type: 'min', limit: min } }
  if (above !== undefined && value <= above) return { problem: { type: 'above', limit: above } }
  if (max !== undefined && value > max) return { problem: { type: 'max', limit: max } }
  if (below !== undefined && value >= below) return { problem: { type: 'below', limit: below } }
  if (available !== undefined && value > available)
    return { problem: { type: 'available', limit: available } }
  if (step !== undefined && !isMultiple(value, step))
    return { problem: { type: 'step', limit: step } }
  return { value }
}

/** Whether a value is a multiple of a step. Both are decimal numbers: 19.99 / 0.01 is not exactly 1999. */
function isMultiple(value: number, step: number): boolean {
  const ratio = value / step
  return Math.abs(ratio - Math.round(ratio)) < 1e-9 * Math.max(1, Math.abs(ratio))
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

function isDay(value: unknown): value is string {
  return (
    typeof value === 'string' &&
    /^\d{4}-\d{2}-\d{2}$/.test(value) &&
    !Number.isNaN(Date.parse(value))
  )
}
