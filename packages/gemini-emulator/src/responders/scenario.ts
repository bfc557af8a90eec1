import { readFile } from 'node:fs/promises'

import { parse } from 'yaml'
import { z } from 'zod'

import { EmulatorError } from '../emulator-error.ts'
import type { Content } from '../wire/content.ts'
import { isObject } from '../wire/proto-json.ts'
import type { Responder } from './responder.ts'
import { ScenarioStep } from './scenario-step.ts'

const When = z.union(
  [
    z.string().min(1),
    z.instanceof(RegExp),
    z.strictObject({ toolResult: z.string().min(1) }),
    z.strictObject({ toolError: z.string().min(1) }),
  ],
  { error: 'when must be a text, a /regular expression/, {toolResult: name} or {toolError: name}' },
)

const Exchange = z.strictObject({
  /**
   * The user's text (ignoring case and surrounding whitespace), a regular expression that it must match (`/…/flags` in a
   * file), or the name of the function whose result arrived (`toolResult`: any result, `toolError`: one with an `error`).
   */
  when: When.transform(toCondition),
  /** The steps of the reply. */
  do: z.array(ScenarioStep).min(1, { error: 'do must list at least one step' }),
})

/** A list of exchanges. The first one that matches the prompt defines the reply. */
export const Scenario = z.strictObject({ exchanges: z.array(Exchange) })
export type Scenario = z.input<typeof Scenario>

type Condition =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'pattern'; readonly pattern: RegExp }
  | { readonly type: 'tool-result'; readonly name: string; readonly isError: boolean }

/** Replies as the scenario says. Returns `undefined` if no exchange matches the prompt. */
export function scenarioResponder(scenario: Scenario): Responder {
  const { exchanges } = parseScenario(scenario, 'The scenario')
  return ({ contents }) => {
    const last = contents.at(-1)
    return exchanges.find((exchange) => isMet(exchange.when, last))?.do
  }
}

/** Reads a scenario from a YAML or JSON file. */
export async function loadScenario(path: string): Promise<Scenario> {
  const source = await readSource(path)
  const value = parseSource(source, path)
  parseScenario(value, path)
  // parseScenario has checked the shape. The responder parses the input again.
  return value as Scenario
}

function parseScenario(value: unknown, name: string) {
  const parsed = Scenario.safeParse(value)
  if (parsed.success) return parsed.data
  throw new EmulatorError('bad-scenario', `${name} is invalid:\n${z.prettifyError(parsed.error)}`, {
    cause: parsed.error,
  })
}

async function readSource(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (cause) {
    const message = `Cannot read the scenario ${path}: ${readMessage(cause)}`
    throw new EmulatorError('unreadable-scenario', message, { cause })
  }
}

function parseSource(source: string, path: string): unknown {
  try {
    // JSON is a subset of YAML.
    return parse(source)
  } catch (cause) {
    const message = `${path} is neither YAML nor JSON: ${readMessage(cause)}`
    throw new EmulatorError('unreadable-scenario', message, { cause })
  }
}

function toCondition(when: z.infer<typeof When>, context: z.RefinementCtx): Condition {
  if (when instanceof RegExp) return { type: 'pattern', pattern: when }
  if (typeof when === 'object')
    return 'toolError' in when
      ? { type: 'tool-result', name: when.toolError, isError: true }
      : { type: 'tool-result', name: when.toolResult, isError: false }
  const [, source, flags] = /^\/(.+)\/([a-z]*)$/s.exec(when) ?? []
  if (source === undefined) return { type: 'text', text: normalise(when) }
  try {
    return { type: 'pattern', pattern: new RegExp(source, flags) }
  } catch (cause) {
    context.addIssue({ code: 'custom', message: readMessage(cause) })
    return z.NEVER
  }
}

function isMet(condition: Condition, last: Content | undefined): boolean {
  const parts = last?.parts ?? []
  const results = parts.flatMap(({ functionResponse }) =>
    functionResponse ? [functionResponse] : [],
  )
  if (condition.type === 'tool-result')
    return results.some(
      ({ name, response }) => name === condition.name && (!condition.isError || hasError(response)),
    )
  if (results.length > 0) return false
  const text = parts.map((part) => part.text ?? '').join('')
  if (condition.type === 'text') return normalise(text) === condition.text
  // Unlike `test`, `search` ignores the `lastIndex` of a pattern with the g flag.
  return text.search(condition.pattern) >= 0
}

/** Whether the result of a function is an error, by Gemini's key for one. */
function hasError(response: unknown): boolean {
  return isObject(response) && response['error'] !== undefined
}

function normalise(text: string): string {
  return text.trim().toLowerCase()
}

function readMessage(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause)
}
