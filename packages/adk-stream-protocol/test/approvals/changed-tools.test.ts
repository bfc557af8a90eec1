import { BaseTool, FunctionTool, type RunAsyncToolRequest } from '@google/adk'
import type { FunctionDeclaration } from '@google/genai'
import { Type } from '@google/genai'
import { startEmulator } from 'gemini-emulator'
import { expect, test } from 'vitest'
import { z } from 'zod'

import { openPair } from '../faults/support/pair.ts'
import { LIVE_MODEL, LiveClient } from '../relay/support/live-pair.ts'
import { TestBridge } from './support/test-bridge.ts'

type Fields = Readonly<Record<string, 'required' | 'optional'>>
type MakeTool = (fields: Fields, runs: unknown[]) => BaseTool

/** A tool with these text fields, of which ADK checks nothing before it runs. */
class DeclaredTool extends BaseTool {
  readonly #fields: Fields
  readonly #runs: unknown[]
  /** What ADK keeps of a tool of an MCP server. */
  readonly mcpTool: unknown

  constructor(fields: Fields, runs: unknown[], isMcp: boolean) {
    super({ name: 'send', description: 'Sends.' })
    this.#fields = fields
    this.#runs = runs
    const { parameters, ...rest } = toDeclaration(fields)
    const inputSchema = { ...parameters, type: 'object', properties: toText(fields) }
    if (isMcp) this.mcpTool = { ...rest, inputSchema }
  }

  // ADK's name for the declaration of a tool.
  // oxlint-disable-next-line no-underscore-dangle
  override _getDeclaration(): FunctionDeclaration {
    return toDeclaration(this.#fields)
  }

  override runAsync({ args }: RunAsyncToolRequest): Promise<unknown> {
    this.#runs.push(args)
    return Promise.resolve({ success: true })
  }
}

function toDeclaration(fields: Fields): FunctionDeclaration {
  const names = Object.keys(fields)
  const properties = Object.fromEntries(names.map((name) => [name, { type: Type.STRING }]))
  const required = names.filter((name) => fields[name] === 'required')
  const parameters = { type: Type.OBJECT, properties, required }
  return { name: 'send', description: 'Sends.', parameters }
}

function toText(fields: Fields): Record<string, unknown> {
  return Object.fromEntries(Object.keys(fields).map((name) => [name, { type: 'string' }]))
}

const TOOLS: Readonly<Record<string, MakeTool>> = {
  'with a zod schema': (fields, runs) =>
    new FunctionTool({
      name: 'send',
      description: 'Sends.',
      parameters: z.object(
        Object.fromEntries(
          Object.entries(fields).map(([name, need]) => [
            name,
            need === 'required' ? z.string() : z.string().optional(),
          ]),
        ),
      ),
      execute: (args) => {
        runs.push(args)
        return { success: true }
      },
    }),
  'with a declaration': (fields, runs) => new DeclaredTool(fields, runs, false),
  'of an MCP server': (fields, runs) => new DeclaredTool(fields, runs, true),
}

const BEFORE: Fields = { to: 'required', text: 'optional' }

interface Change {
  readonly name: string
  readonly after: Fields
  /** The arguments of the call. Default: both fields. */
  readonly args?: Record<string, string>
  readonly edited?: Record<string, string>
  readonly ran: readonly unknown[]
}

const ARGS = { to: 'Ann', text: 'Hello' }

const CHANGES: readonly Change[] = [
  { name: 'nothing', after: BEFORE, ran: [ARGS] },
  { name: 'a new optional field', after: { ...BEFORE, from: 'optional' }, ran: [ARGS] },
  { name: 'a new required field', after: { ...BEFORE, from: 'required' }, ran: [] },
  { name: 'a field less', after: { to: 'required' }, ran: [] },
  {
    name: 'a field less that the call does not have',
    after: { to: 'required' },
    args: { to: 'Ann' },
    ran: [{ to: 'Ann' }],
  },
  {
    name: 'a new required field, and arguments that were edited to fit',
    after: { ...BEFORE, from: 'required' },
    edited: { ...ARGS, from: 'Ben' },
    ran: [{ ...ARGS, from: 'Ben' }],
  },
]

test.each(
  Object.entries(TOOLS).flatMap(([kind, make]) =>
    CHANGES.map((change) => ({ kind, make, change })),
  ),
)(
  '[AP1045] a call of a tool $kind after a new version with $change.name',
  async ({ make, change: { after, args = ARGS, edited, ran } }) => {
    const runs: unknown[] = []
    let fields = BEFORE
    await using testBridge = await TestBridge.open({
      tools: () => [make(fields, runs)],
      approvals: { send: true },
      isLive: false,
    })
    const page = testBridge.page()
    const text = `[[call send ${JSON.stringify(args)}]][[then]][[say Done.]]`
    const message = { id: 'u1', role: 'user', parts: [{ type: 'text', text }] }
    await page.post({ id: 'chat-1', messages: [message] })
    const [asked] = await page.inbox()
    const id = asked?.id ?? ''
    fields = after
    await testBridge.restart()
    const decided = { approved: true, ...(edited && { args: edited }) }
    const { status } = await page.decide(id, decided)
    await page.untilMessages(([, reply]) => JSON.stringify(reply).includes('Done.'))
    expect(runs).toEqual(ran)
    const state = ran.length > 0 ? 'succeeded' : 'cancelled'
    expect((await page.approval(id)).approval.state).toBe(state)
    // The person learns it at once, except for a tool of an MCP server, which is checked when its call is claimed.
    expect([200, ran.length > 0 ? 200 : 410]).toContain(status)
    const told = JSON.stringify(testBridge.results)
    expect(told.includes('the tool has changed since')).toBe(ran.length === 0)
  },
)

test.each(
  Object.entries(TOOLS).flatMap(([kind, make]) =>
    [undefined, { ...ARGS, from: 'Ben' }].map((args) => ({ kind, make, args })),
  ),
)(
  '[AP1045] a live session of a new version that takes over a call of a tool $kind, with the edited arguments $args',
  async ({ make, args }) => {
    const runs: unknown[] = []
    const after: Fields = { ...BEFORE, from: 'required' }
    await using emulator = await startEmulator()
    await using pair = await openPair({
      liveModel: LIVE_MODEL,
      modelUrl: emulator.baseUrl,
      approvals: { send: true },
      tools: [make(after, runs)],
      ofOne: { tools: [make(BEFORE, runs)] },
    })
    const first = await LiveClient.join(pair.one.url, 'chat-1')
    await first.say(`[[call send ${JSON.stringify(ARGS)}]][[then]][[say Done.]]`)
    const [asked] = await pair.atOne.approvals()
    await first[Symbol.asyncDispose]()
    await using second = await LiveClient.join(pair.two.url, 'chat-1')
    await second.status('open')
    await pair.atTwo.decide(asked?.id ?? '', { approved: true, ...(args && { args }) })
    await second.hears('Done.')
    expect(runs).toEqual(args ? [args] : [])
    const { state } = (await pair.store.approvals.get(asked?.id ?? '')) ?? {}
    expect(state?.name).toBe(args ? 'succeeded' : 'cancelled')
  },
)
