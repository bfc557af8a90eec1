import { isRecord } from '../../protocol/guards.ts'
import type { Arguments } from './call.ts'

type Schema = Readonly<Record<string, unknown>>

/** A form field of an argument, with the limits of its schema. Its value is text, except for booleans. */
export type Field = { readonly name: string; readonly rules: Rules } & (
  | {
      readonly kind: 'text' | 'number' | 'json' | 'date' | 'select'
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
  readonly minLength?: number
  readonly maxLength?: number
  readonly pattern?: string
  readonly options?: readonly unknown[]
}

/** Why a field is not valid. The labels describe it. */
export type FieldProblem =
  | { readonly type: 'required' | 'number' | 'integer' | 'json' | 'date' | 'option' | 'pattern' }
  | {
      readonly type: 'min' | 'max' | 'above' | 'below' | 'step' | 'minLength' | 'maxLength'
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
    return { ...base, kind: isDate ? 'date' : 'text', value: value ?? '' }
  }
  return { ...base, kind: 'json', value: isEmpty ? '' : JSON.stringify(value, null, 2) }
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
  }
  const numbers = Object.entries(limits).filter(
    ([, limit]) => typeof limit === 'number' && Math.abs(limit) < Number.MAX_SAFE_INTEGER,
  )
  const values: unknown = own['enum']
  return {
    ...(Object.fromEntries(numbers) as Partial<Rules>),
    ...(own['type'] === 'integer' && { isInteger: true }),
    ...(typeof own['pattern'] === 'string' && { pattern: own['pattern'] }),
    ...(Array.isArray(values) && { options: values as unknown[] }),
  }
}

type Reading =
  | { readonly state: 'valid'; readonly args: Arguments }
  | { readonly state: 'invalid'; readonly problems: ReadonlyMap<string, FieldProblem> }

/** Parses the form into arguments and keeps their types. Returns the problem of each field that is not valid. */
export function readFields(fields: readonly Field[], locale = 'en'): Reading {
  const entries: [string, unknown][] = []
  const problems = new Map<string, FieldProblem>()
  for (const field of fields) {
    const read = readField(field, locale)
    if ('problem' in read) problems.set(field.name, read.problem)
    else if ('value' in read) entries.push([field.name, read.value])
  }
  return problems.size > 0
    ? { state: 'invalid', problems }
    : { state: 'valid', args: Object.fromEntries(entries) }
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
      return checkText(value, rules)
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

function readEmpty(
  kind: Exclude<Field['kind'], 'boolean'>,
  value: string,
  { required, isGiven, minLength = 0 }: Rules,
): FieldReading {
  if (kind === 'text') {
    if (!required && !isGiven) return { isLeftOut: true }
    return minLength > 0 ? { problem: { type: 'required' } } : { value }
  }
  if (!required) return { isLeftOut: true }
  return { problem: { type: kind === 'select' ? 'option' : kind } }
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
  const { min, max, above, below, step, isInteger = false } = rules
  if (isInteger && !Number.isInteger(value)) return { problem: { type: 'integer' } }
  if (min !== undefined && value < min) return { problem: { type: 'min', limit: min } }
  if (above !== undefined && value <= above) return { problem: { type: 'above', limit: above } }
  if (max !== undefined && value > max) return { problem: { type: 'max', limit: max } }
  if (below !== undefined && value >= below) return { problem: { type: 'below', limit: below } }
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
