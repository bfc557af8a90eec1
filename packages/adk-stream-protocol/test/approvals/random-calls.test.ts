import { AgentTool, requestInputTool } from '@google/adk'
import * as fc from 'fast-check'
import type { Action, Prompt } from 'gemini-emulator'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'

import { isLong, times } from '../../../../test/support/long-run.ts'
import { browserTool } from '../../src/server/index.ts'
import { assistant, tool } from '../support/agents.ts'
import { type ChatPart, toolParts } from '../support/chat-probe.ts'
import type { ApprovingChat, ApprovingClient } from './support/approving-chat.ts'
import { approvalOf, approvingClients, liveClient, ourClients } from './support/approving-chat.ts'
import { expectPositions } from './support/expect-positions.ts'
import { expectRecord } from './support/expect-record.ts'
import { agentOf } from './support/nested-agents.ts'
import type { Page } from './support/page.ts'
import { paymentTool } from './support/payments.ts'
import { TestBridge } from './support/test-bridge.ts'

// A model makes random calls in one response: with and without approval, on the server, in the browser, inside another agent, and
// questions. It streams them in random chunks, with text and thoughts between them. A person decides, answers and returns results in any
// order, in the page or in the inbox. However that goes, each call ends as it was decided, and the chat goes on.

const KINDS = ['pay', 'locate', 'play', 'look', 'ask', 'help'] as const
type Kind = (typeof KINDS)[number]

interface PlannedCall {
  readonly kind: Kind
  /** Whether the call is sent in a chunk of its own. */
  readonly separate: boolean
  /** What the model says before the call. */
  readonly before: 'nothing' | 'text' | 'thought'
  /** Whether the person approves the call, if it needs an approval. */
  readonly approved: boolean
}

/** One thing that the person does. */
interface Act {
  /** Which of the things to do. */
  readonly pick: number
  readonly where: 'page' | 'inbox'
}

interface Plan {
  readonly calls: readonly PlannedCall[]
  readonly acts: readonly Act[]
}

const plans: fc.Arbitrary<Plan> = fc.record({
  calls: fc.array(
    fc.record({
      // Calls that wait are more often wrong than others.
      kind: fc.constantFrom<Kind>('pay', 'locate', ...KINDS),
      separate: fc.boolean(),
      before: fc.constantFrom('nothing', 'nothing', 'text', 'thought'),
      approved: fc.constantFrom(true, true, false),
    }),
    { minLength: 2, maxLength: 5 },
  ),
  acts: fc.array(
    fc.record({
      pick: fc.nat({ max: 9 }),
      where: fc.constantFrom('page', 'page', 'inbox'),
    }),
    { maxLength: 8 },
  ),
})

const TOOLS = {
  pay: 'process_payment',
  locate: 'get_location',
  play: 'play_track',
  look: 'look',
  ask: 'adk_request_input',
  help: 'helper',
} as const satisfies Record<Kind, string>

/** The arguments of a call. The number identifies it. */
function toArgs(kind: Kind, number: number): Record<string, unknown> {
  if (kind === 'pay') return { amount: 1, recipient: `${number}` }
  if (kind === 'ask') return { message: `${number}` }
  return kind === 'help' ? { request: `${number}` } : { number }
}

const Numbered = z.object({ number: z.number() })
const browser = (name: string, isGated: boolean) =>
  browserTool({ name, description: name, parameters: Numbered, requireConfirmation: isGated })

class RandomChat {
  readonly violations: string[] = []
  readonly looked: unknown[] = []
  readonly #plan: Plan

  constructor(plan: Plan) {
    this.#plan = plan
  }

  /** The model of both agents. */
  readonly respond = (prompt: Prompt): Action[] => {
    const { contents, mode } = prompt
    const start = contents.findLastIndex(
      ({ role, parts = [] }) => role !== 'model' && parts.some(({ text }) => text),
    )
    const request = contents[start]?.parts?.[0]?.text ?? ''
    const results = contents
      .slice(start)
      .flatMap(({ parts = [] }) => parts)
      .filter(({ functionResponse: result }) => result && result.willContinue !== true)
    if (agentOf(prompt) === 'helper') {
      const pay = { type: 'call', name: TOOLS.pay, args: toInner(Number(request)) } as const
      return results.length > 0 ? [{ type: 'say', text: 'Helped.' }] : [pay]
    }
    if (request === 'Next.') return [{ type: 'say', text: 'Next.' }]
    const { calls } = this.#plan
    if (results.length === 0) return calls.flatMap(toActions)
    if (results.length < calls.length) {
      if (mode === 'rest') this.violations.push(`asked with ${results.length} results`)
      return []
    }
    return [{ type: 'say', text: 'Done.' }]
  }

  /** Acts until the reply has ended. Returns the chat in the page. */
  async follow(page: Page, client: ApprovingClient): Promise<ApprovingChat> {
    let chat = await page.open(client, { autoSend: 'both' })
    await chat.send('Go.')
    const acts = [...this.#plan.acts]
    for (let round = 0; round < MAX_ROUNDS; round += 1) {
      await chat.rest()
      const todo = toolParts(chat.lastMessage).filter(isOpen)
      if (todo.length === 0 && hasEnded(chat)) return chat
      if (todo.length === 0) {
        await this.#continue(chat, client)
        continue
      }
      const { pick, where } = acts.shift() ?? { pick: 0, where: 'page' }
      const part = todo[pick % todo.length]
      // A page that is loaded after the approval of a browser tool shows its result without the approval.
      const isInInbox = where === 'inbox' && !todo.some(({ type }) => type === LOCATE)
      if (part?.state !== 'approval-requested' || !isInInbox) await this.#act(chat, part)
      else {
        await this.#decideInInbox(page, part)
        chat = await page.open(client, { autoSend: 'both' })
      }
    }
    this.violations.push('the reply did not end')
    return chat
  }

  async #act(chat: ApprovingChat, part: ChatPart | undefined): Promise<void> {
    const { toolCallId = '', type = '' } = part ?? {}
    const { id = '' } = approvalOf(part) ?? {}
    if (part?.state === 'approval-requested')
      return chat.click({ id, approved: this.#isApproved(part) })
    await chat.give({
      tool: type.replace('tool-', ''),
      toolCallId,
      output: { number: numberOf(part) },
    })
  }

  async #decideInInbox(page: Page, part: ChatPart): Promise<void> {
    const { id = '' } = approvalOf(part) ?? {}
    await page.decide(id, { approved: this.#isApproved(part) })
    await page.untilMessages((messages) => {
      const known = toolParts(messages.at(-1)).find(
        ({ toolCallId }) => toolCallId === part.toolCallId,
      )
      return known?.state !== 'approval-requested'
    })
  }

  /** Sends what the helpers of the AI SDK do not send by themselves. The client library needs no help. */
  async #continue(chat: ApprovingChat, { ours }: ApprovingClient): Promise<void> {
    if (ours) await chat.until(() => hasEnded(chat) || toolParts(chat.lastMessage).some(isOpen))
    else await chat.sendAsItIs()
  }

  #isApproved(part: ChatPart): boolean {
    return this.#plan.calls[numberOf(part)]?.approved === true
  }

  /** Returns how the calls have ended, and how they were decided. Both must be equal. */
  async compare(page: Page, { wallet }: TestBridge, chat: ApprovingChat): Promise<Endings[]> {
    const { calls } = this.#plan
    const parts = toolParts(chat.lastMessage)
    const histories: string[] = []
    const decisions: string[] = []
    for (const part of parts) {
      const { id } = approvalOf(part) ?? {}
      if (id === undefined) continue
      const ended = this.#isApproved(part) ? ['approved', 'started', 'succeeded'] : ['denied']
      histories.push((await page.history(id)).join(' '))
      decisions.push(['requested', ...ended].join(' '))
    }
    const found = {
      parts: parts.map(describePart).toSorted(),
      paid: wallet.payments.map(({ recipient }) => recipient).toSorted(),
      looked: this.looked.length,
      ledger: histories,
    }
    const decided = {
      parts: calls.flatMap(toEndings).map(describePart).toSorted(),
      paid: calls.flatMap(toRecipients).toSorted(),
      looked: calls.filter(({ kind }) => kind === 'look').length,
      ledger: decisions,
    }
    return [found, decided]
  }
}

/** How the calls of a message have ended. */
interface Endings {
  readonly parts: readonly string[]
  /** The recipients of the payments that were made. */
  readonly paid: readonly string[]
  /** How often the tool without approval has run. */
  readonly looked: number
  /** The entries of the ledger about each approval. */
  readonly ledger: readonly string[]
}

/** Returns how a call ends, and the call inside it. */
function toEndings({ kind, approved }: PlannedCall, number: number): ChatPart[] {
  const end = approved ? 'output-available' : 'output-denied'
  const state = kind === 'pay' || kind === 'locate' ? end : 'output-available'
  const type = `tool-${TOOLS[kind]}`
  const given = state === 'output-available' && { output: { number } }
  const own = { type, input: toArgs(kind, number), state, ...given }
  const inner = { type: `tool-${TOOLS.pay}`, input: toInner(number), state: end }
  return kind === 'help' ? [own, inner] : [own]
}

function toRecipients({ kind, approved }: PlannedCall, number: number): string[] {
  if (!approved || (kind !== 'pay' && kind !== 'help')) return []
  return [kind === 'pay' ? `${number}` : `in ${number}`]
}

/** Describes a part, with its result if the page has given it. */
function describePart({ type, input, state, output }: ChatPart): string {
  const given = GIVEN.has(type) ? ` ${JSON.stringify(output)}` : ''
  return `${type} ${JSON.stringify(input)} ${state}${given}`
}

const GIVEN = new Set([TOOLS.locate, TOOLS.play, TOOLS.ask].map((name) => `tool-${name}`))

const MAX_ROUNDS = 30
const LOCATE = `tool-${TOOLS.locate}`

/** Whether a call waits for the person or for the page. Calls of other tools run on the server. */
function isOpen({ type, state }: ChatPart): boolean {
  return state === 'approval-requested' || (state === 'input-available' && GIVEN.has(type))
}

function hasEnded({ text }: ApprovingChat): boolean {
  return text.endsWith('Done.')
}

/** Returns the number of the planned call that a part belongs to. */
function numberOf(part: ChatPart | undefined): number {
  return Number(/\d+(?=\D*$)/.exec(JSON.stringify(part?.input))?.[0] ?? -1)
}

function toInner(number: number): Record<string, unknown> {
  return { amount: 1, recipient: `in ${number}` }
}

/** Returns what the model does for a planned call. */
function toActions({ kind, separate, before }: PlannedCall, number: number): Action[] {
  const said: Action[] =
    before === 'nothing' ? [] : [{ type: before === 'text' ? 'say' : 'think', text: `${number}.` }]
  return [...said, { type: 'call', name: TOOLS[kind], args: toArgs(kind, number), separate }]
}

/** An agent that runs while an earlier call waits, and then waits too: its approval is part of the same stream. */
const STARTED_LATER: Plan = {
  calls: [
    { kind: 'locate', separate: true, before: 'thought', approved: false },
    { kind: 'look', separate: false, before: 'nothing', approved: true },
    { kind: 'help', separate: true, before: 'thought', approved: false },
  ],
  acts: [],
}

const CLIENTS = [...approvingClients, liveClient, ...ourClients]

describe.each(CLIENTS)('$name', (client) => {
  test('[AP7] [PO1] calls of any kind, streamed and decided in any way, end as decided, and the chat goes on', async () => {
    const property = fc.asyncProperty(plans, async (plan) => {
      const random = new RandomChat(plan)
      await using testBridge = await TestBridge.open({
        respond: random.respond,
        tools: (wallet) => [paymentTool(wallet)],
        agent: (model, tools) => {
          const helper = assistant(model, {
            name: 'helper',
            instruction: 'I am the helper.',
            tools,
          })
          return assistant(model, {
            tools: [
              ...tools,
              browser(TOOLS.locate, true),
              browser(TOOLS.play, false),
              tool(TOOLS.look, (args) => ({ looked: random.looked.push(args) })),
              requestInputTool,
              new AgentTool({ agent: helper }),
            ],
          })
        },
      })
      const page = testBridge.page()
      const chat = await random.follow(page, client)
      const [found, decided] = await random.compare(page, testBridge, chat)
      expect(found).toEqual(decided)
      await expectRecord(page, chat)
      await chat.send('Next.')
      expect(chat.text).toBe('Next.')
      await expectRecord(page, chat)
      expect(await expectPositions(testBridge)).toBeGreaterThan(0)
      expect([...random.violations, ...testBridge.errors]).toEqual([])
    })
    // `npm test` has the same plans in each run.
    const seed = !isLong && { seed: 1_004 + CLIENTS.indexOf(client) }
    const examples: [Plan][] = client.live ? [[STARTED_LATER]] : []
    const numRuns = times(client.live ? 2 : 4, 60)
    const checked = fc.assert(property, { examples, numRuns, ...seed })
    await expect(checked).resolves.toBeUndefined()
  })
})
