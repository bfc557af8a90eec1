import { isDeepStrictEqual } from 'node:util'

import type { AuditRecord } from '../../../src/approvals/audit-entry.ts'
import { NEXT, stateAfter } from '../../ledger/support/state-machine.ts'
import type { ChatMessage, ChatPart } from '../../support/chat-probe.ts'
import { isMarked, isPending, QUESTION, replyTo, textOf } from './chaos-client.ts'
import { checkRuns, expectedText, textBeforeRepetition } from './check-runs.ts'
import {
  type ChaosHistory,
  isBrowserKind,
  PAYMENT_KINDS,
  type RecordedDecision,
  type RecordedFault,
  type RecordedTurn,
} from './history.ts'

/** Checks everything that several servers guarantee, independently of the code under test. Returns the violations. */
export function checkChaos(history: ChaosHistory): string[] {
  const violations = [...history.problems]
  const byApproval = groupBy(history.audit, ({ approvalId }) => approvalId)
  for (const [approvalId, records] of byApproval)
    violations.push(...checkApproval(history, approvalId, records))
  violations.push(...checkEffects(history, byApproval))
  for (const [chatId, views] of history.chats) violations.push(...checkViews(chatId, views))
  for (const turn of history.turns) violations.push(...checkTurn(history, turn))
  violations.push(...checkRuns(history))
  return violations
}

/** One approval: its states follow each other as they may, its decision is the acknowledged one, and it ends once. */
function checkApproval(
  history: ChaosHistory,
  approvalId: string,
  records: readonly AuditRecord[],
): string[] {
  const [requested] = records
  if (requested?.event.type !== 'requested') return [`${approvalId}: not requested first`]
  const { toolCallId, toolName, terms } = requested.event
  const { chatId } = requested.chat
  const found: string[] = []
  const must = (holds: boolean, what: string): void => {
    if (!holds) found.push(`${chatId}/${toolCallId} (${approvalId}): ${what}`)
  }
  const states = records.map(({ event }) => stateAfter(event))
  for (const [index, state] of states.entries()) {
    must(records[index]?.version === index, 'a version is missing or was used twice')
    const before = states[index - 1]
    const mayStartAgain = terms.idempotent || isUnstarted(records[index])
    const isRetry = mayStartAgain && before === 'executing' && state === 'approved'
    must(
      before === undefined || isRetry || NEXT[before].includes(state),
      `${before} became ${state}`,
    )
  }
  const attempts = history.decisions.filter((decision) => decision.approvalId === approvalId)
  const accepted = attempts.filter(({ result }) => result === 'accepted')
  const decided = records.filter(({ event: { type } }) => type === 'approved' || type === 'denied')
  must(accepted.length <= 1, `${accepted.length} decisions were accepted`)
  must(decided.length <= 1, `${decided.length} decisions are recorded`)
  const end = states.at(-1) ?? 'requested'
  // If the client never learned of the approval, it waits for its deadline.
  must(NEXT[end].length === 0 || (end === 'requested' && attempts.length === 0), `it stays ${end}`)
  const isApproved = decided[0]?.event.type === 'approved'
  for (const { approved } of accepted)
    must(
      decided.length === 1 && isApproved === approved,
      'an acknowledged decision is not recorded',
    )
  if (decided.length === 1) {
    const isTried = attempts.some(
      (attempt) => attempt.result !== 'refused' && isRecorded(attempt, decided[0]?.event),
    )
    must(isTried, `a decision is recorded that no client made: ${JSON.stringify(decided[0])}`)
  }
  const isPayment = PAYMENT_KINDS.some((kind) => kind === toolName)
  must(toolName !== QUESTION || end !== 'unknown', 'the answer was lost')
  if (isApproved && isPayment)
    must(end === 'succeeded' || end === 'unknown', `approved, and ends as ${end}`)
  const started = records.filter(
    ({ event }, index) => event.type === 'started' && !isUnstarted(records[index + 1]),
  )
  must(started.length <= 1 || terms.idempotent, `started ${started.length} times`)
  for (const record of records) {
    const { at, event } = record
    if (event.type !== 'lost' || isUnstarted(record)) continue
    const from = Math.max(...started.filter((start) => start.at <= at).map((start) => start.at))
    must(
      isDisrupted(history, { from, to: at, by: isCrash }),
      'lost, but no server crashed or stood still',
    )
  }
  const effects = history.effects.filter(
    (effect) => effect.chatId === chatId && effect.key === toolCallId,
  )
  must(effects.length <= started.length, `ran ${effects.length} times, started ${started.length}`)
  const runs = started.map(({ event }) => event.type === 'started' && event.args['amount'])
  for (const { amount } of effects) must(runs.includes(amount), `paid ${amount} instead`)
  if (end === 'succeeded' && isPayment) must(effects.length >= 1, 'succeeded, but did not run')
  const reply = (history.chats.get(chatId)?.[0] ?? []).find(({ parts }) =>
    parts.some((part) => part.toolCallId === toolCallId),
  )
  const parts = reply?.parts.filter((part) => part.toolCallId === toolCallId) ?? []
  must(parts.length <= 1, `the conversation has ${parts.length} parts`)
  // The page may have failed to run a browser tool.
  const isFailedPage =
    isBrowserKind(toolName) && end === 'succeeded' && parts[0]?.state === 'output-error'
  // A call that ran is never replaced, an answered question may be (AP426).
  const mayBeReplaced = end === 'denied' || toolName === QUESTION
  const isReplaced = !reply && mayBeReplaced && isRetried(history, chatId)
  if (decided.length === 1 && !isFailedPage && !isReplaced)
    must(isShown(parts[0], end), `${end} is shown as ${parts[0]?.state}`)
  must(isKnownTool(toolName), `unknown tool ${toolName}`)
  return found
}

/** Whether a server gave up a call that it had claimed without knowing it. */
function isUnstarted(record: AuditRecord | undefined): boolean {
  return record?.event.type === 'lost' && record.event.isUnstarted === true
}

/** Whether the person tried to send a message of a chat again. */
function isRetried({ turns }: ChaosHistory, chatId: string): boolean {
  return turns.some((turn) => turn.chatId === chatId && turn.isRetried === true)
}

function isKnownTool(name: string): boolean {
  return PAYMENT_KINDS.some((kind) => kind === name) || name === QUESTION || isBrowserKind(name)
}

/** Whether the audit record has this decision, with everything that the person added to it. */
function isRecorded(decision: RecordedDecision, event: AuditRecord['event'] | undefined): boolean {
  const { approved, reason, args, payload } = decision
  if (event?.type === 'denied') return !approved && (event.reason ?? '') === (reason ?? '')
  if (event?.type !== 'approved') return false
  const { editedArgs } = event
  return (
    approved && isDeepStrictEqual(editedArgs, args) && isDeepStrictEqual(event.payload, payload)
  )
}

function isShown(part: ChatPart | undefined, end: string): boolean {
  if (end === 'succeeded') return part?.state === 'output-available'
  if (end === 'denied') return part?.state === 'output-denied' || part?.state === 'output-error'
  return part?.state === 'output-error'
}

/** Nothing ran without an approval. */
function checkEffects(
  { effects }: ChaosHistory,
  byApproval: ReadonlyMap<string, readonly AuditRecord[]>,
): string[] {
  const started = new Set(
    [...byApproval.values()].flatMap((records) => {
      const [requested] = records
      const hasStarted = records.some(({ event }) => event.type === 'started')
      return requested?.event.type === 'requested' && hasStarted
        ? [`${requested.chat.chatId}/${requested.event.toolCallId}`]
        : []
    }),
  )
  return effects.flatMap(({ chatId, key }) =>
    started.has(`${chatId}/${key}`) ? [] : [`${chatId}/${key}: ran without being started`],
  )
}

/** All servers show the same conversation. */
function checkViews(chatId: string, views: readonly (readonly ChatMessage[])[]): string[] {
  const [first = []] = views
  const ids = first.map(({ id }) => id)
  const found = new Set(ids).size === ids.length ? [] : [`${chatId}: a message is stored twice`]
  if (views.some((view) => !isDeepStrictEqual(view, first)))
    found.push(`${chatId}: the servers show different conversations`)
  return found
}

/** The reply to a message is whole, or marked as interrupted for a reason. Its text is never doubled. */
function checkTurn(history: ChaosHistory, turn: RecordedTurn): string[] {
  const { chatId, userMessageId, seen, from, to, fault } = turn
  const name = `${chatId}/${userMessageId} (${turn.kind})`
  if (fault === 'not sent') return []
  if (fault !== undefined) return [`${name}: ${fault}`]
  if (turn.hasFreeText === true) return []
  const found: string[] = []
  const must = (holds: boolean, what: string): void => {
    if (!holds) found.push(`${name}: ${what}`)
  }
  const messages = history.chats.get(chatId)?.[0] ?? []
  const reply = replyTo(messages, userMessageId)
  const text = reply ? textOf(reply) : ''
  const expected = expectedText(turn, reply)
  const isOwn = turn.seenIn === undefined || turn.seenIn === reply?.id
  must(!isOwn || expected.startsWith(seen), `the client saw another text: ${seen}`)
  must(expected.startsWith(text), `another text is stored: ${text}`)
  const isDisturbed = isDisrupted(history, { from, to, by: mayInterrupt(history) })
  const isBegunAgain = reply !== undefined && Boolean(textBeforeRepetition(reply))
  must(!isBegunAgain || isDisturbed, `it was begun again, and nothing interrupted it: ${text}`)
  if (text === expected) {
    const { read } = turn
    // A server may die after it has stored the reply and before it has ended the stream.
    if (!read || !reply || textOf(read) !== expected || isMarked(read)) return found
    must(
      isDeepStrictEqual(comparable(read), comparable(reply)),
      `the client has ${JSON.stringify(read)}, stored is ${JSON.stringify(reply)}`,
    )
    return found
  }
  if (reply && waitsForPage(history, turn, reply)) return found
  must(turn.stops || isDisturbed, `not whole, and nothing interrupted it: ${text}`)
  must(
    turn.stops || (reply && isMarked(reply)) || isDisturbed,
    `not whole, and not marked: ${text}`,
  )
  return found
}

/** Whether a call waits for a page, because the person left before their page ran it. It waits until its timeout. */
function waitsForPage(
  { runs }: ChaosHistory,
  { kind, chatId, userMessageId }: RecordedTurn,
  reply: ChatMessage,
): boolean {
  const hasRun = runs.some(
    (run) => run.chatId === chatId && `${chatId}.${run.id}` === userMessageId,
  )
  return isBrowserKind(kind) && isPending(reply) && !hasRun
}

/**
 * Returns what must be equal in a message that was read from a stream and the stored one. A client that reads a reply from its start is
 * not asked again about a decided call: it gets the call without its approval, and a denied one as failed.
 */
function comparable({ parts, ...message }: ChatMessage): unknown {
  const called = parts.map((part) => {
    if (part.toolCallId === undefined) return part
    const { type, toolCallId, input, output, state } = part
    return { type, toolCallId, input, output, state: state?.replace('denied', 'error') }
  })
  return JSON.parse(JSON.stringify({ ...message, parts: called }))
}

interface Disruption {
  readonly from: number
  readonly to: number
  readonly by: (fault: RecordedFault) => boolean
}

/** Whether there was such a fault, in this time or at most a lease before. */
function isDisrupted({ faults, leaseMs }: ChaosHistory, { from, to, by }: Disruption): boolean {
  return faults.some((fault) => by(fault) && fault.from <= to && fault.to >= from - leaseMs)
}

/** Faults after which a call may be lost. However long the database is away, it is none of them. */
function isCrash({ kind }: RecordedFault): boolean {
  return kind === 'kill' || kind === 'pause' || kind === 'stall'
}

/** Faults after which a reply may be interrupted: also a database that is away for half a lease. */
function mayInterrupt({ leaseMs }: ChaosHistory): (fault: RecordedFault) => boolean {
  return (fault) => {
    const { kind, from, to } = fault
    const isAway = kind === 'away' || kind === 'lock' || kind.startsWith('restart-')
    return isCrash(fault) || (isAway && to - from > leaseMs / 2)
  }
}

function groupBy<Item>(
  items: readonly Item[],
  keyOf: (item: Item) => string,
): ReadonlyMap<string, readonly Item[]> {
  const groups = new Map<string, Item[]>()
  for (const item of items) {
    const group = groups.get(keyOf(item)) ?? []
    group.push(item)
    groups.set(keyOf(item), group)
  }
  return groups
}
