import type { Action, Prompt } from '../responders/responder.ts'

/** Applies the calling mode: NONE removes all calls, ANY ensures a call of an allowed function. */
export function applyCallMode(actions: readonly Action[], prompt: Prompt): readonly Action[] {
  if (prompt.callMode === 'NONE') return actions.filter((action) => action.type !== 'call')
  if (prompt.callMode !== 'ANY') return actions
  const allowed = new Set(prompt.functions.map(({ name }) => name))
  const kept = actions.filter((action) => action.type !== 'call' || allowed.has(action.name))
  if (kept.some((action) => action.type === 'call' || ENDINGS.has(action.type))) return kept
  const [forced] = prompt.functions
  if (!forced) return kept
  const args = minimalValue(forced.parameters ?? forced.parametersJsonSchema)
  return [...kept, { type: 'call', name: forced.name, args: isRecord(args) ? args : {} }]
}

/** Returns a minimal value of the schema, for a call that the responder did not return. */
function minimalValue(schema: unknown): unknown {
  if (!isRecord(schema)) return undefined
  const { type, enum: choices, required, properties } = schema
  if (Array.isArray(choices)) return choices[0]
  switch (String(type).toLowerCase()) {
    case 'object': {
      const names = Array.isArray(required) ? required.map(String) : []
      const fields = isRecord(properties) ? properties : {}
      return Object.fromEntries(names.map((name) => [name, minimalValue(fields[name])]))
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

const ENDINGS: ReadonlySet<Action['type']> = new Set(['block', 'fail', 'drop', 'raw', 'finish'])
