import { existsSync, writeSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { setTimeout as delay } from 'node:timers/promises'

import type { AgentCard } from '@a2a-js/sdk'
import { MCPToolset, RemoteA2AAgent, requestInputTool } from '@google/adk'
import { z } from 'zod'

import { defer } from '../../support/agents.ts'
import { hookStore } from './hook-store.ts'
import { openJumpingStore } from './jumping-store.ts'
import { planTool } from '../../../src/server/index.ts'
import { openPostgresStore } from '../../../src/store/postgres/index.ts'
import { EXIT_MS, Plant, plantInStore, repeatSometimes } from './plants.ts'
import { pageTools } from './page-tools.ts'
import { chargeTool, openPaymentServer, paymentTool } from './payment-server.ts'
import { logChanges, ServerLog, summarise } from './server-log.ts'

/*
 * A server process: `child <database> <effects> <name>`. It prints `ready` when its code is loaded, starts to serve at the first line of
 * its input, and prints its URL. It closes on SIGTERM.
 *
 * The id of a chat says what its tools and its process do:
 * - `<name>.<moment>.…`: at this moment, the process prints `at <chat>` and does nothing more in the chat
 * - `<name>.hold.…`: tools wait for the line `go` of the input
 * - `<name>.block.…`: tools block the event loop until a file exists: that of the effects, followed by `.<chat>.go`
 * - `slow.…`: tools run until some time after SIGTERM
 *
 * The line `release <gate>` of the input releases a gate of the emulator.
 *
 * Environment:
 * - `DATABASE_URL`: the PostgreSQL database to use instead of the SQLite file
 * - `CLOCK_OFFSET_MS`: the error of the clock of the process
 * - `LOG_FILE`: where the process logs requests, chunks, errors and changes of the store
 * - `REPORT_STALLS`: print when the event loop did not run for this many ms
 * - `TOOL_MS`: delays before and after the effect of a tool, each up to this long. `LONG_TOOL_MS`: some delays are of this length, such as
 *   `2000-5000`
 * - `PLANT`: a fault that the tests should find, see `plants.ts`
 * - `MODEL_URL`, `LIVE_MODEL`: the emulator to use, and the live model. `LIVE_SPOKEN`: the live model speaks
 * - `MCP_URL`: an MCP server whose tools the agent has, and which may ask people
 * - `A2A_CARD`: a remote agent to which the agent can transfer
 * - `GATED_DESK`: the call of the agent `desk` needs approval itself
 * - `IN_STEPS`: the steps around the agent, see `PaymentServerOptions`
 * - `CHAOS_TOOLS`: the agent has tools that run in the page, see `pageTools`, and `hurry`, a payment with a short deadline
 */

const [database = '', effects = '', name = ''] = process.argv.slice(2)

function report(line: string): void {
  // Synchronous, so that output before a kill arrives.
  writeSync(1, `${line}\n`)
}

const logFile = process.env['LOG_FILE']
const log = logFile === undefined ? undefined : new ServerLog(logFile)

const stopped = new Set<string>()
let go = defer()

const terminated = new Promise<void>((resolve) => process.once('SIGTERM', () => resolve()))

/** Longer than a turn that was stopped waits for its tools. */
const SLOW_MS = 1_500

const toolMs = Number(process.env['TOOL_MS'] ?? 0)

const [longToolMs = 0, longestToolMs = 0] = (process.env['LONG_TOOL_MS'] ?? '')
  .split('-')
  .map(Number)
/** How many of the tools take long. */
const LONG_SHARE = 0.3

/** Returns how long a tool takes before or after its effect. */
function chooseToolMs(): number {
  return longToolMs > 0 && Math.random() < LONG_SHARE
    ? longToolMs + Math.random() * (longestToolMs - longToolMs)
    : Math.random() * toolMs
}

async function reached(moment: string, chatId: string): Promise<void> {
  if (plant === 'run-twice' && moment === 'after effect') repeatSometimes(effects, chatId)
  if (toolMs > 0 && moment.endsWith(' effect')) await delay(chooseToolMs())
  const [victim, at] = chatId.split('.')
  if (victim === 'slow' && moment === 'before effect') {
    report(`running ${chatId}`)
    await terminated
    await delay(SLOW_MS)
  }
  if (victim === name && moment === 'before effect') {
    if (at === 'hold' || at === 'block') report(`at ${chatId}`)
    if (at === 'hold') await go.promise
    if (at === 'block') blockUntil(() => existsSync(`${effects}.${chatId}.go`))
  }
  const isHere = victim === name && at === moment.replace(' ', '-')
  // Nothing else in this process, such as a sweep, may continue the chat: the process counts as killed.
  if (!isHere && !stopped.has(chatId)) return
  stopped.add(chatId)
  report(`at ${chatId}`)
  await new Promise(() => undefined)
}

/** Blocks the event loop without keeping a core busy. */
function blockUntil(isOver: () => boolean): void {
  const never = new Int32Array(new SharedArrayBuffer(4))
  while (!isOver()) Atomics.wait(never, 0, 0, 20)
}

const offsetMs = Number(process.env['CLOCK_OFFSET_MS'] ?? 0)
if (offsetMs !== 0) {
  const now = Date.now.bind(Date)
  Date.now = () => now() + offsetMs
}

const stallMs = Number(process.env['REPORT_STALLS'] ?? 0)
if (stallMs > 0) {
  let ranAt = performance.now()
  const check = (): void => {
    const silentMs = performance.now() - ranAt
    if (silentMs > stallMs) {
      report(`stalled ${Math.round(silentMs)}`)
      log?.write(`server: stalled ${Math.round(silentMs)} ms`)
    }
    ranAt = performance.now()
  }
  setInterval(check, stallMs / 4).unref()
}

const input = createInterface({ input: process.stdin })[Symbol.asyncIterator]()
report('ready')
await input.next()
const connectionString = process.env['DATABASE_URL']
const busyTimeoutMs = Number(process.env['BUSY_TIMEOUT_MS'] ?? 60_000)
const plant = Plant.optional().parse(process.env['PLANT'])
const opened =
  connectionString === undefined
    ? await openJumpingStore(database)
    : await openPostgresStore({ connectionString, schema: 'public', busyTimeoutMs })
const hooked = hookStore(plant === undefined ? opened : plantInStore(opened, plant), reached)
const store = log ? logChanges(hooked, log) : hooked
const modelUrl = process.env['MODEL_URL']
const leaseMs = Number(process.env['LEASE_MS'] ?? 60_000)
const maxBlockedMs = Number(process.env['MAX_BLOCKED_MS'] ?? 60_000)
const mcpUrl = process.env['MCP_URL']
const connection = { type: 'StreamableHTTPConnectionParams', url: mcpUrl ?? '' } as const
const toolsets = mcpUrl === undefined ? [] : [new MCPToolset(connection, [], 'files')]
const card = process.env['A2A_CARD']
const subAgents =
  card === undefined
    ? []
    : [new RemoteA2AAgent({ name: 'helper', agentCard: JSON.parse(card) as AgentCard })]
const hasChaosTools = process.env['CHAOS_TOOLS'] !== undefined
const tip = paymentTool({ name: 'tip', requireConfirmation: true }, effects, reached)
const hurry = paymentTool({ name: 'hurry', requireConfirmation: true }, effects, reached)
/** Further tips to the same person, up to 100 in all. */
const TIPS = [{ budget: { argument: 'amount', max: 100 }, scope: 'person' }] as const

const paymentServer = await openPaymentServer({
  store,
  effects,
  reached,
  tools: [
    requestInputTool,
    chargeTool(effects, reached),
    tip,
    planTool({ tools: [tip] }),
    ...toolsets,
    ...(hasChaosTools ? [...pageTools(), hurry] : []),
  ],
  subAgents,
  elicitation: toolsets.length > 0,
  signIn: { baseUrl: 'http://localhost:4', providers: { bank: { type: 'apiKey' } } },
  inSteps: z
    .enum(['sequence', 'workflow', 'tool', 'question', 'nodes'])
    .optional()
    .parse(process.env['IN_STEPS']),
  ...(modelUrl !== undefined && { modelUrl, liveModel: process.env['LIVE_MODEL'] ?? '' }),
  isSpoken: process.env['LIVE_SPOKEN'] !== undefined,
  approvals: { top_up: { idempotent: true }, tip: { grants: TIPS, plans: true } },
  ...(process.env['GATED_DESK'] !== undefined && {
    approvals: { top_up: { idempotent: true }, desk: true },
  }),
  ...(hasChaosTools && {
    approvals: { top_up: { idempotent: true }, hurry: { deadlineMs: 1_500 } },
  }),
  disconnectGraceMs: Number(process.env['GRACE_MS'] ?? 0),
  ...(log && {
    log: ({ message, ...entry }) => log.write(`server: ${message} ${summarise(entry)}`),
    onError: (error) => log.error(error),
    onRequest: (line) => log.write(line),
  }),
  onChunk: (chunk, { chatId, messageId }) => {
    const { type } = chunk
    if (!type.endsWith('-delta')) log?.write(`chunk ${chatId} ${messageId} ${summarise(chunk)}`)
    // A chunk cannot be delayed. In such a chat, the model waits before its next reply.
    if (type.startsWith('tool-output-')) void reached('after telling', chatId)
  },
  limits: { leaseMs, sweepMs: 100, maxPendingPerPrincipal: 1_000, maxBlockedMs },
})
report(paymentServer.url)
log?.write(`server: ${name} serves at ${paymentServer.url}`)
if (plant === 'exit') setTimeout(() => process.exit(1), EXIT_MS)
void terminated.then(async () => {
  log?.write('server: closes')
  await paymentServer.bridge.close()
  await store.close()
  process.exit(0)
})
for await (const line of { [Symbol.asyncIterator]: () => input }) {
  const [word, gate = ''] = line.split(' ')
  if (word === 'go') {
    go.resolve()
    go = defer()
  }
  if (word === 'release') paymentServer.emulator.release(gate)
}
// The parent process has ended.
process.exit(0)
