import type { Arguments } from './call.ts'

/** A form field of an argument. Its value is text, except for booleans. */
export type Field = { readonly name: string } & (
  | { readonly kind: 'text' | 'number' | 'json'; readonly value: string }
  | { readonly kind: 'boolean'; readonly value: boolean }
)

/** Returns one form field per argument, of the kind of its value. */
export function toFields(args: Arguments): Field[] {
  return Object.entries(args).map(([name, value]): Field => {
    if (typeof value === 'string') return { name, kind: 'text', value }
    if (typeof value === 'number') return { name, kind: 'number', value: String(value) }
    if (typeof value === 'boolean') return { name, kind: 'boolean', value }
    return { name, kind: 'json', value: JSON.stringify(value, null, 2) }
  })
}

type Reading =
  | { readonly state: 'valid'; readonly args: Arguments }
  | { readonly state: 'invalid'; readonly field: Field }

/** Parses the form into arguments and keeps their types. Returns the first field that cannot be parsed. */
export function readFields(fields: readonly Field[]): Reading {
  const entries: [string, unknown][] = []
  for (const field of fields) {
    const read = readField(field)
    if (!read) return { state: 'invalid', field }
    entries.push([field.name, read.value])
  }
  return { state: 'valid', args: Object.fromEntries(entries) }
}

function readField({ kind, value }: Field): { readonly value: unknown } | undefined {
  if (kind === 'text' || kind === 'boolean') return { value }
  if (kind === 'number') {
    const number = Number(value)
    return value.trim() !== '' && Number.isFinite(number) ? { value: number } : undefined
  }
  try {
    return { value: JSON.parse(value) }
  } catch {
    // The form marks the invalid field.
    return undefined
  }
}
