import { z } from 'zod'

import { EmulatorError } from '../../emulator-error.ts'
import type { Mind } from '../../mind.ts'
import type { Content } from '../../wire/content.ts'
import { normalise, Scenario, type Condition } from './scenario.ts'

/** Plays a scenario; it passes on a prompt that no exchange is written for. */
export function scenarioMind(scenario: Scenario): Mind {
  const { exchanges } = parseScenario(scenario, 'The scenario')
  return ({ contents }) => {
    const last = contents.at(-1)
    return exchanges.find((exchange) => isMet(exchange.when, last))?.do
  }
}

/** Checks the shape; `name` is what the message calls the scenario. */
export function parseScenario(value: unknown, name: string) {
  const parsed = Scenario.safeParse(value)
  if (parsed.success) return parsed.data
  throw new EmulatorError(
    'bad-scenario',
    `${name} does not fit:\n${z.prettifyError(parsed.error)}`,
    { cause: parsed.error },
  )
}

function isMet(condition: Condition, last: Content | undefined): boolean {
  const parts = last?.parts ?? []
  const results = parts.flatMap(({ functionResponse }) => functionResponse?.name ?? [])
  if (condition.type === 'tool-result') return results.includes(condition.name)
  if (results.length > 0) return false
  const text = parts.map((part) => part.text ?? '').join('')
  if (condition.type === 'text') return normalise(text) === condition.text
  // Unlike `test`, `search` does not remember where a pattern with the g flag stopped.
  return text.search(condition.pattern) >= 0
}
