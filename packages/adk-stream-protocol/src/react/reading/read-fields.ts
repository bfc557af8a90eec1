import type { Arguments } from './call.ts'
import type { Field, Rules } from './form-fields.ts'
import { isDay, parseNumber, readRules, toField } from './form-fields.ts'

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
        | 'alone'
        | 'available'
        | 'minLength'
        | 'maxLength'
        | 'minItems'
        | 'maxItems'
      readonly limit: number
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
  if (rules.isInteger === true && !Number.isInteger(value)) return { problem: { type: 'integer' } }
  for (const [type, isBroken] of NUMBER_LIMITS) {
    const limit = rules[type]
    if (limit !== undefined && isBroken(value, limit)) return { problem: { type, limit } }
  }
  return { value }
}

type IsBroken = (value: number, limit: number) => boolean

/** The limits of a number, in the order in which they are checked. */
const NUMBER_LIMITS: readonly (readonly [
  'min' | 'above' | 'max' | 'below' | 'available' | 'alone' | 'step',
  IsBroken,
])[] = [
  ['min', (value, limit) => value < limit],
  ['above', (value, limit) => value <= limit],
  ['max', (value, limit) => value > limit],
  ['below', (value, limit) => value >= limit],
  ['available', (value, limit) => value > limit],
  ['alone', (value, limit) => value > limit],
  ['step', (value, limit) => !isMultiple(value, limit)],
]

/** Whether a value is a multiple of a step. Both are decimal numbers: 19.99 / 0.01 is not exactly 1999. */
function isMultiple(value: number, step: number): boolean {
  const ratio = value / step
  return Math.abs(ratio - Math.round(ratio)) < 1e-9 * Math.max(1, Math.abs(ratio))
}
