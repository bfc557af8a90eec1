/**
 * Type guards for server responses in the browser. They replace zod there, because zod adds 24 KB (`zod/mini`) to 454
 * KB (`zod`) to a bundle for the same checks (CL150).
 */

/** Checks whether a value has a type. */
export type Guard<Value> = (value: unknown) => value is Value

/** A guard for each field of an object. An optional field has an `optional` guard. */
type FieldGuards<Value> = { readonly [Field in keyof Value]-?: Guard<Value[Field]> }

export const isString: Guard<string> = (value) => typeof value === 'string'
export const isNumber: Guard<number> = (value) => typeof value === 'number'
export const isBoolean: Guard<boolean> = (value) => typeof value === 'boolean'
export const isAnything: Guard<unknown> = (_value): _value is unknown => true

/** Whether a value is an object or an array. */
export const isObject: Guard<Record<string, unknown>> = (value): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null

/** Whether a value is an object but not an array. */
export const isRecord: Guard<Record<string, unknown>> = (value): value is Record<string, unknown> =>
  isObject(value) && !Array.isArray(value)

export function isOneOf<const Value>(...values: readonly Value[]): Guard<Value> {
  return (value): value is Value => values.some((each) => each === value)
}

export function isArrayOf<Item>(isItem: Guard<Item>): Guard<Item[]> {
  return (value) => Array.isArray(value) && value.every(isItem)
}

export function optional<Value>(isValue: Guard<Value>): Guard<Value | undefined> {
  return (value) => value === undefined || isValue(value)
}

/** Returns a guard for an object with these fields. Other fields are allowed, because a newer server may send them. */
export function isObjectOf<Value extends object>(fields: FieldGuards<Value>): Guard<Value> {
  // The entries of `fields` are guards of the fields of `Value`.
  const guards = Object.entries(fields) as [string, Guard<unknown>][]
  return (value): value is Value =>
    isRecord(value) && guards.every(([field, isValid]) => isValid(value[field]))
}

export function isEither<One, Other>(isOne: Guard<One>, isOther: Guard<Other>): Guard<One | Other> {
  return (value): value is One | Other => isOne(value) || isOther(value)
}
