import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'

import { describe, expect, test } from 'vitest'

import { TestBridge } from '../approvals/support/test-bridge.ts'
import { paymentTool } from '../approvals/support/payments.ts'
import { weather } from '../support/agents.ts'
import { type ChatMessage, textOf, toolParts } from '../support/chat-probe.ts'
import { locationTool, musicTool } from '../support/locating.ts'
import type { Conversation } from './support/conversation.ts'
import type { Mode } from './support/modes.ts'
import { modes } from './support/modes.ts'
import { normalise } from './support/normalise.ts'
import type { Scenario, Step } from './support/scenarios.ts'
import { scenarios } from './support/scenarios.ts'

const FOLDER = path.join(import.meta.dirname, 'recorded')
const RECORDS = process.env['UPDATE_BASELINES'] === '1'

describe.each(scenarios)('$name', (scenario) => {
  // Both tests use the same conversation.
  const played = new Map<Mode, Promise<Played>>()
  const playOnce = (mode: Mode): Promise<Played> => {
    const known = played.get(mode) ?? play(scenario, mode)
    played.set(mode, known)
    return known
  }

  test.each(modes)('[BL1] $name sends the recorded chunks', async (mode) => {
    const { wire } = await playOnce(mode)
    const file = path.join(FOLDER, scenario.name, `${mode.name}.txt`)
    if (RECORDS) {
      mkdirSync(path.dirname(file), { recursive: true })
      writeFileSync(file, wire)
    }
    const recorded = existsSync(file) ? readFileSync(file, 'utf8') : ''
    expect(wire.split('\n')).toEqual(recorded.split('\n'))
  })

  test('[BL2] every mode results in the same message', async () => {
    const left = []
    for (const mode of modes) left.push((await playOnce(mode)).left)
    expect(left[0]).toMatchObject({ text: expect.stringMatching(/\w|。/) as string })
    for (const other of left) expect(other).toEqual(left[0])
  })
})

interface Played {
  readonly wire: string
  readonly left: object
}

async function play({ ask, steps }: Scenario, mode: Mode): Promise<Played> {
  const expires = steps.some(({ type }) => type === 'expire')
  await using testBridge = await TestBridge.open({
    tools: (wallet) => [weather, paymentTool(wallet), locationTool({ gated: true }), musicTool()],
    ...(expires && { approvalDeadlineMs: 800 }),
  })
  const page = testBridge.page()
  const untilText = (): Promise<void> =>
    page.untilMessages((messages) => textOf(messages.at(-1)) !== '')
  await using conversation = await mode.open(testBridge.url)
  await conversation.say(ask)
  for (const step of steps) await take(conversation, step, untilText)
  await conversation.end()
  await untilText()
  const wire = normalise(conversation.lines)
  return { wire, left: describeMessage((await page.messages()).at(-1)) }
}

async function take(
  conversation: Conversation,
  step: Step,
  untilText: () => Promise<void>,
): Promise<void> {
  if (step.type === 'decide') await conversation.decide(step.approved)
  else if (step.type === 'give') await conversation.give(step.output)
  else await conversation.expire(untilText)
}

function describeMessage(message: ChatMessage | undefined): object {
  const calls = toolParts(message).map(({ type, state, input, output, errorText }) => ({
    type,
    state,
    input,
    output,
    errorText,
  }))
  return { text: textOf(message), calls }
}
