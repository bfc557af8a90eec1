import { z } from 'zod'

import type { ToolInfo } from '../../../studio-info.ts'

/** A field of the form for a tool. */
export interface ToolField {
  readonly name: string
  /** `json` is for everything that is no single value. */
  readonly type: 'text' | 'number' | 'integer' | 'boolean' | 'choice' | 'json'
  readonly isRequired: boolean
  readonly description: string | undefined
  /** The values of a choice. */
  readonly choices: readonly string[]
  /** What the field contains at first, as text. */
  readonly initial: string
}

const Property = z.looseObject({
  type: z.union([z.string(), z.array(z.string())]).optional(),
  description: z.string().optional(),
  enum: z.array(z.unknown()).optional(),
  default: z.unknown().optional(),
  example: z.unknown().optional(),
  examples: z.array(z.unknown()).optional(),
})

const Parameters = z.looseObject({
  properties: z.record(z.string(), z.unknown()).default({}),
  required: z.array(z.string()).default([]),
})

/** Returns the fields for the arguments of a tool, from their JSON schema. */
export function readFields({ parameters }: Pick<ToolInfo, 'parameters'>): readonly ToolField[] {
  const { properties, required } = Parameters.safeParse(parameters ?? {}).data ?? {
    properties: {},
    required: [],
  }
  return Object.entries(properties).map(([name, schema]) => {
    const property = Property.safeParse(schema).data
    const choices = (property?.enum ?? []).filter((value) => typeof value === 'string')
    const type = choices.length > 0 ? 'choice' : readType(property?.type)
    const given = property?.default ?? property?.example ?? property?.examples?.[0]
    return {
      name,
      type,
      isRequired: required.includes(name),
      description: property?.description,
      choices,
      initial: toText(given, type),
    }
  })
}

function readType(type: string | readonly string[] | undefined): ToolField['type'] {
  const [name = 'object'] = [type ?? []].flat().filter((each) => each !== 'null')
  switch (name.toLowerCase()) {
    case 'string':
      return 'text'
    case 'number':
      return 'number'
    case 'integer':
      return 'integer'
    case 'boolean':
      return 'boolean'
    default:
      return 'json'
  }
}

function toText(value: unknown, type: ToolField['type']): string {
  if (value === undefined || value === null) return ''
  return type === 'json' || typeof value !== 'string' ? JSON.stringify(value) : value
}

/**
 * Returns the value of a field, or undefined if it is left out. An empty field that is not required is left out. Throws if the text is not
 * a value of its type.
 */
export function readValue({ type, isRequired }: ToolField, text: string): unknown {
  if (text === '' && !(isRequired && type === 'text')) return undefined
  switch (type) {
    case 'text':
    case 'choice':
      return text
    case 'number':
    case 'integer':
      return Number(text)
    case 'boolean':
      return text === 'true'
    case 'json':
      return JSON.parse(text) as unknown
  }
}
