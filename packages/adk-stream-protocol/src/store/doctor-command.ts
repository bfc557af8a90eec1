import { parseArgs } from 'node:util'

import { buildTimeline, readApprovalWait } from '../agent/timeline/build-timeline.ts'
import { describeCall, describeWait, shortenArgs } from '../agent/timeline/timeline-text.ts'
import type { Approval, ApprovalStateName } from '../approvals/approval.ts'
import type { WorkerLease } from '../locks/lock-store.ts'
import type { TimelineEntry } from '../protocol/timeline.ts'
import { isToolEntry } from '../protocol/timeline.ts'
import { collect } from '../shared/async.ts'
import { type AppChatRef, toChatKey } from '../shared/chat-ref.ts'
import { type CommandOutput, runCommand } from '../shared/command.ts'
import { describeFault } from './audit-chain.ts'
import type { FeatureReport, Section } from './describe.ts'
import { formatTime, nameChat } from './describe.ts'
import { reportFeatures } from './features.ts'
import type { Store } from './store.ts'
import { openStore, readLease } from './commands.ts'

const USAGE = `Usage:
  adk-stream-protocol doctor <database> [--app <name>]
  adk-stream-protocol doctor <database> --chat <id> [--principal <id>] [--app <name>]

<database> is a SQLite file or a URL of PostgreSQL. Servers may use it meanwhile; nothing is changed.

Lists what waits and why, and what to do: pending approvals, approved calls that no server has started, calls whose server
has crashed, calls with an unknown outcome, browser tools, channels of notify that cannot be reached, servers with their leases and chat locks. Checks the audit record.
With --chat it prints why one chat waits, and what happened in its last turns. --principal names the owner of the chat, if
the chat has no open approval, browser tool or lock.

  --app <name>       one application. Default: all, and adk-stream-protocol for --chat
  --schema <name>    the schema of PostgreSQL
  --lease-ms <ms>    the limit leaseMs of the servers, if they do not use the default of 15000

The exit code is 0 if nothing needs an operator, 1 if something does, and 2 if the command failed.`

const OPTIONS = {
  app: { type: 'string' },
  chat: { type: 'string' },
  principal: { type: 'string' },
  schema: { type: 'string' },
  'lease-ms': { type: 'string' },
} as const

/** Runs `doctor`. Returns the exit code. */
export function runDoctorCommand(args: string[], output: CommandOutput): Promise<number> {
  return runCommand({ usage: USAGE, args }, output, async () => {
    const { positionals, values } = parseArgs({ args, allowPositionals: true, options: OPTIONS })
    const [, database, ...others] = positionals
    if (database === undefined || others.length > 0) return undefined
    const leaseMs = readLease(values['lease-ms'])
    await using store = await openStore(database, values.schema)
    const work = await readWork(store, { appName: values.app, leaseMs })
    if (values.chat === undefined) return report(work, output)
    const chat = findChat(work, values.chat, values)
    // Awaited before the store is closed.
    if (chat) return await reportChat(store, chat, { work, output })
    output.printError(
      `Nothing is open in a chat with the id ${values.chat}. Pass --principal with the id of its owner to see what happened in it.`,
    )
    return 2
  })
}

/** What is open in a database. */
interface OpenWork {
  readonly now: number
  readonly leaseMs: number
  readonly pending: readonly Approval[]
  readonly approved: readonly Approval[]
  readonly executing: readonly Approval[]
  /** Running calls whose server does not renew its lease. */
  readonly stale: ReadonlySet<string>
  /** Calls of the last day that may or may not have taken effect. */
  readonly unknown: readonly Approval[]
  readonly features: Required<FeatureReport>
  /** What is wrong with the audit record. Undefined if it is intact. */
  readonly auditFault: string | undefined
  /** Undefined if the store cannot list them. */
  readonly workers: readonly WorkerLease[] | undefined
}

const DAY_MS = 86_400_000
const PAGE = 200

async function readWork(
  store: Store,
  { appName, leaseMs }: { readonly appName: string | undefined; readonly leaseMs: number },
): Promise<OpenWork> {
  const { approvals } = store
  const now = await approvals.now()
  const list = async (state: ApprovalStateName): Promise<Approval[]> => {
    const found: Approval[] = []
    const filter = { states: [state], limit: PAGE, ...(appName !== undefined && { appName }) }
    for (let page = await approvals.list(filter); page.length > 0;) {
      found.push(...page)
      const after = page.at(-1)?.id
      page =
        page.length < PAGE || after === undefined ? [] : await approvals.list({ ...filter, after })
    }
    return found
  }
  const unknown = await list('unknown')
  const executing = await list('executing')
  const workers = await approvals.listWorkers?.()
  // Without a server, no lease time passes, and `stale` finds nothing.
  const silent = new Set(
    workers?.flatMap(({ worker, silentMs }) => (silentMs >= leaseMs ? [worker] : [])),
  )
  const ofSilent = executing.filter(
    ({ state }) => state.name === 'executing' && silent.has(state.worker),
  )
  const stale = [...(await approvals.stale(leaseMs)), ...ofSilent]
  const { fault } = (await approvals.verifyAudit?.()) ?? {}
  return {
    auditFault: fault && describeFault(fault),
    now,
    leaseMs,
    pending: await list('requested'),
    approved: await list('approved'),
    executing,
    stale: new Set(stale.map(({ id }) => id)),
    unknown: unknown.filter(({ state }) => 'at' in state && state.at > now - DAY_MS),
    features: await reportFeatures(store, { appName, now, leaseMs }),
    workers,
  }
}

/** Prints what is open. Returns the exit code. */
async function report(work: OpenWork, { print }: CommandOutput): Promise<number> {
  const sections = [
    ...listFaults(work),
    ...listApprovals(work),
    ...listCalls(work),
    ...work.features.sections,
    ...listServers(work),
  ]
  const problems = sections.filter(({ isProblem }) => isProblem)
  const count = problems.reduce((sum, { lines }) => sum + lines.length, 0)
  const waiting = sections.some(({ lines }) => lines.length > 0)
  const calm = waiting ? 'Nothing needs an operator.' : 'Nothing waits.'
  await print(
    count === 0 ? calm : `${count} ${count === 1 ? 'item needs' : 'items need'} an operator.`,
  )
  for (const { title, lines, todo } of sections) {
    if (lines.length === 0) continue
    await print(`\n${title} (${lines.length})`)
    for (const line of lines) await print(`  ${line}`)
    if (todo !== undefined) await print(`  To do: ${todo}`)
  }
  return count === 0 ? 0 : 1
}

function listFaults({ auditFault }: OpenWork): Section[] {
  return [
    {
      title: 'The audit record was changed',
      lines: auditFault === undefined ? [] : [auditFault],
      todo: 'find out who can write to the database. `adk-stream-protocol audit export` prints the record.',
      isProblem: true,
    },
  ]
}

function listApprovals({ pending, now, leaseMs, approved }: OpenWork): Section[] {
  const late = pending.filter(({ deadline }) => deadline + leaseMs <= now)
  const open = pending.filter(({ deadline }) => deadline + leaseMs > now)
  const waiting = approved.filter(({ state }) => 'at' in state && state.at + leaseMs <= now)
  return [
    {
      title: 'Pending approvals',
      lines: open.map((approval) => `${nameChat(approval.chat)}: ${describe(approval)}`),
      todo: 'a person who may approve decides in the inbox, or with POST /approvals/<id>. Without a decision the call does not run.',
    },
    {
      title: 'Pending approvals after their deadline',
      lines: late.map((approval) => `${nameChat(approval.chat)}: ${describe(approval)}`),
      todo: 'start a server on this database. It ends these approvals, and none of their calls runs.',
      isProblem: true,
    },
    {
      title: 'Approved calls that no server has started',
      lines: waiting.map((approval) => `${nameChat(approval.chat)}: ${describe(approval)}`),
      todo: 'start a server that has the agent and the tool of these calls. It starts them, each once.',
      isProblem: true,
    },
  ]
}

function listCalls({ executing, stale, unknown }: OpenWork): Section[] {
  const running = executing.filter(({ id }) => !stale.has(id))
  const lost = executing.filter(({ id }) => stale.has(id))
  return [
    { title: 'Running calls', lines: running.map(describeRun) },
    {
      title: 'Calls whose server has crashed',
      lines: lost.map(describeRun),
      todo: 'start a server on this database. It reports these calls as unknown, or runs them again if they are idempotent.',
      isProblem: true,
    },
    {
      title: 'Calls with an unknown outcome, last 24 hours',
      lines: unknown.map((approval) => `${describeRun(approval)}, approval ${approval.id}`),
      todo: 'check in the system that the tool changes whether each call took effect. The model was told that it is unknown.',
      isProblem: true,
    },
  ]
}

function describeRun(approval: Approval): string {
  const worker = approval.state.name === 'executing' ? ` on ${approval.state.worker}` : ''
  return `${nameChat(approval.chat)}: ${nameCall(approval)}${worker}`
}

function listServers({ workers = [], leaseMs }: OpenWork): Section[] {
  const isRunning = ({ silentMs, ended }: WorkerLease): boolean => !ended && silentMs < leaseMs
  const lost = workers.filter((worker) => !isRunning(worker) && worker.locks.length > 0)
  return [
    { title: 'Servers with work', lines: workers.filter(isRunning).map(describeServer) },
    {
      title: 'Servers that have crashed and hold chat locks',
      lines: lost.map(describeServer),
      todo: 'nothing if another server runs: the next request or the recovery takes these chats over. Otherwise start one.',
    },
  ]
}

function describeServer({ worker, silentMs, locks }: WorkerLease): string {
  const held = locks.map(
    ({ chat, heldMs, background }) =>
      `${nameChat(chat)} for ${formatAge(heldMs)}${background ? ' in the background' : ''}`,
  )
  const locked = held.length === 0 ? '' : `; locks ${held.join(', ')}`
  return `${worker}: lease renewed ${formatAge(silentMs)} ago${locked}`
}

/** Finds the owner of a chat among what is open. */
function findChat(
  work: OpenWork,
  chatId: string,
  {
    app = 'adk-stream-protocol',
    principal,
  }: { readonly app?: string; readonly principal?: string },
): AppChatRef | undefined {
  if (principal !== undefined) return { appName: app, principalId: principal, chatId }
  const known = [
    ...work.pending,
    ...work.approved,
    ...work.executing,
    ...work.unknown,
    ...work.features.clientCalls,
    ...(work.workers ?? []).flatMap(({ locks }) => locks),
  ]
  return known.map(({ chat }) => chat).find((chat) => chat.chatId === chatId)
}

const SHOWN_TURNS = 20

/** Prints why a chat waits, and what happened in it. Returns the exit code. */
async function reportChat(
  store: Store,
  chat: AppChatRef,
  { work, output: { print } }: { readonly work: OpenWork; readonly output: CommandOutput },
): Promise<number> {
  const isHere = belongsTo(chat)
  const { timeline, exists } = await readTimeline(store, chat, work)
  await print(`${nameChat(chat)}\n${timeline?.why ?? ''}`)
  for (const wait of timeline?.waits.slice(1) ?? []) await print(describeWait(wait))
  const lock = work.workers?.find(({ locks }) => locks.some(isHere))
  if (lock)
    await print(
      `Locked by ${lock.worker}, which renewed its lease ${formatAge(lock.silentMs)} ago.`,
    )
  if (!exists) await print('The chat does not exist.')
  for (const entry of timeline?.entries ?? []) {
    await print(describeEntry(entry))
    if (entry.type !== 'approval') continue
    for (const line of await work.features.describeApproval(chat.appName, entry.approvalId))
      await print(`  ${line}`)
  }
  const stuck = work.executing.filter(isHere).some(({ id }) => work.stale.has(id))
  return stuck || work.unknown.some(isHere) ? 1 : 0
}

async function readTimeline(
  { sessions, approvals }: Store,
  chat: AppChatRef,
  { now, pending, approved, executing, features }: OpenWork,
) {
  const isHere = belongsTo(chat)
  const waiting = new Set(features.clientCalls.filter(isHere).map(({ toolCallId }) => toolCallId))
  const { appName, principalId: userId, chatId: sessionId } = chat
  const session = await sessions.getSession({ appName, userId, sessionId })
  const audit = await collect(approvals.audit({ chat }))
  const timeline = buildTimeline(
    {
      chatId: chat.chatId,
      now,
      events: session?.events ?? [],
      audit,
      open: [...pending, ...approved, ...executing].filter(isHere),
      running: await features.findRunning(chat),
      isClientCall: ({ toolCallId }) => waiting.has(toolCallId),
      showText: false,
      reader: undefined,
    },
    { limit: SHOWN_TURNS },
  )
  return { timeline, exists: session !== undefined }
}

function belongsTo(chat: AppChatRef): (item: { readonly chat: AppChatRef }) => boolean {
  const key = toChatKey(chat)
  return (item) => toChatKey(item.chat) === key
}

function describeEntry(entry: TimelineEntry): string {
  const took = entry.endedAt === undefined ? '' : ` ${formatAge(entry.endedAt - entry.at)}`
  return `${formatTime(entry.at)} ${entry.type}${took}${describeDetail(entry)}`
}

function describeDetail(entry: TimelineEntry): string {
  if (isToolEntry(entry)) return ` ${describeCall(entry)} ${entry.state}`
  switch (entry.type) {
    case 'message':
    case 'interruption':
      return ''
    case 'turn':
      return ` ${entry.state}${entry.usage ? `, ${entry.usage.totalTokens} tokens` : ''}`
    case 'model':
      return entry.usage ? ` ${entry.usage.totalTokens} tokens` : ''
    case 'approval': {
      const votes = entry.votes.map(({ by, at, withdrawnAt }) =>
        withdrawnAt === undefined ? `${by} ${formatTime(at)}` : `${by} withdrew`,
      )
      const by = votes.length === 0 ? '' : `, approved by ${votes.join(', ')}`
      return ` ${describeCall(entry)} ${entry.state}${by}`
    }
    case 'error':
      return ` ${entry.code}`
    case 'hand-over':
      return ` to ${entry.name ?? entry.to}`
  }
}

function describe(approval: Approval): string {
  const wait = readApprovalWait(approval, undefined)
  return wait ? `${describeWait(wait)} Approval ${approval.id}.` : nameCall(approval)
}

function nameCall({ toolCallId, toolName, args, terms }: Approval): string {
  return describeCall({ toolCallId, toolName, args: shortenArgs(args), title: terms.title })
}

function formatAge(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`
  if (ms < 120_000) return `${Math.round(ms / 1_000)} s`
  return ms < 7_200_000 ? `${Math.round(ms / 60_000)} min` : `${Math.round(ms / 3_600_000)} h`
}
