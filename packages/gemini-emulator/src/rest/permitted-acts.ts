import type { Act, Prompt } from '../mind.ts'

/** Holds the model to the caller's calling mode: NONE never calls, ANY must call one of the functions offered. */
export function permittedActs(acts: readonly Act[], prompt: Prompt): readonly Act[] {
  if (prompt.callMode === 'NONE') return acts.filter((act) => act.type !== 'call')
  if (prompt.callMode !== 'ANY') return acts
  const offered = new Set(prompt.functions.map(({ name }) => name))
  const kept = acts.filter((act) => act.type !== 'call' || offered.has(act.name))
  if (kept.some((act) => act.type === 'call' || ENDS.has(act.type))) return kept
  const [forced] = prompt.functions
  if (!forced) return kept
  const args = exampleOf(forced.parameters ?? forced.parametersJsonSchema)
  return [...kept, { type: 'call', name: forced.name, args: isRecord(args) ? args : {} }]
}

/** A smallest value of the schema, for a call that the mind did not think of. */
function exampleOf(schema: unknown): unknown {
  if (!isRecord(schema)) return undefined
  const { type, enum: choices, required, properties } = schema
  if (Array.isArray(choices)) return choices[0]
  switch (String(type).toLowerCase()) {
    case 'object': {
      const wanted = Array.isArray(required) ? required.map(String) : []
      const fields = isRecord(properties) ? properties : {}
      return Object.fromEntries(wanted.map((name) => [name, exampleOf(fields[name])]))
    }
    case 'array':
      return []
    case 'number':
    case 'integer':
      return 0
    case 'boolean':
      return false
    default:
      return ''
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const ENDS: ReadonlySet<Act['type']> = new Set(['block', 'fail', 'drop', 'raw', 'finish'])
