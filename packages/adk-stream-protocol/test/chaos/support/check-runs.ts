import type { ChatMessage, ChatPart } from '../../support/chat-probe.ts'
import { QUESTION, replyTo, textOf } from './chaos-client.ts'
import { type ChaosHistory, isBrowserKind, type RecordedRun, type RecordedTurn } from './history.ts'

/** The whole text of a reply. If the script of the turn has none, the emulated model reports each result that it receives. */
export function expectedText(turn: RecordedTurn, reply: ChatMessage | undefined): string {
  if (turn.kind === 'ask') return expectedReport(QUESTION, reply)
  if (isBrowserKind(turn.kind)) return expectedReport(turn.kind, reply)
  return (reply && expectedRepetition(turn, reply)) ?? turn.expected
}

/**
 * Returns the whole text of a reply in which the emulated live model repeats the outcome of the message's own call, and undefined for
 * another reply. The model receives an outcome as a text if the call was parked (LV602), or if the connection does not know the call,
 * because the session was restored from its messages (LC12). The emulator continues its script after a function response only. A lost
 * reply is empty, and one that was made twice repeats the outcome twice: neither equals this text. A reply that was cut off (LV22) has
 * the beginning of its script before it.
 */
function expectedRepetition({ expected }: RecordedTurn, reply: ChatMessage): string | undefined {
  const begun = textBeforeRepetition(reply) ?? ''
  if (begun === expected || !expected.startsWith(begun)) return undefined
  const text = textOf(reply).slice(begun.length)
  const { id, name } = REPEATED_OUTCOME.exec(text)?.groups ?? {}
  const call = reply.parts.find(({ toolCallId }) => toolCallId !== undefined)
  const isOwn = id === undefined ? call?.type === `tool-${name}` : call?.toolCallId === id
  return isOwn ? `${begun}${text.split('\n')[0]}${EMULATOR_HINT}` : undefined
}

/** Returns what a live reply begins with before the emulated model repeats an outcome. Undefined if it repeats none. */
export function textBeforeRepetition(reply: ChatMessage): string | undefined {
  const text = textOf(reply)
  const index = text.indexOf(REPETITION)
  return index < 0 ? undefined : text.slice(0, index)
}

const REPETITION = 'The emulator received: ['

const REPEATED_OUTCOME =
  /^The emulator received: \[(?:Result of the call (?<id>\S+), |(?<name>\w+) returned )/
const EMULATOR_HINT = '\nTo script the reply, send [[say Hello.]] or load a scenario.'

function expectedReport(kind: string, reply: ChatMessage | undefined): string {
  const part = reply?.parts.find(({ toolCallId }) => toolCallId !== undefined)
  if (reply && part?.state === 'output-available')
    return `${kind} -> ${JSON.stringify(part.output)}`
  const text = reply ? textOf(reply) : ''
  return /^\w+ -> \{[^{}]*\}$/.test(text) ? text : `${kind} -> `
}

/** A browser tool runs again only if the tab that ran it was closed before the server had its result. The stored result is that of a run. */
export function checkRuns(history: ChaosHistory): string[] {
  return history.turns.flatMap((turn) => {
    if (!isBrowserKind(turn.kind) || turn.fault !== undefined) return []
    const id = Number(turn.userMessageId.split('.').at(-1))
    const runs = history.runs.filter((run) => run.chatId === turn.chatId && run.id === id)
    return checkRunsOf(turn, runs, history)
  })
}

function checkRunsOf(
  turn: RecordedTurn,
  runs: readonly RecordedRun[],
  history: ChaosHistory,
): string[] {
  const found: string[] = []
  const must = (holds: boolean, what: string): void => {
    if (!holds) found.push(`${turn.userMessageId} (${turn.kind}): ${what}`)
  }
  for (const [index, { name, from, toolCallId }] of runs.entries())
    for (const earlier of runs.slice(0, index)) {
      // A person who tries again gets another reply, with a call of its own.
      if (earlier.toolCallId !== toolCallId) continue
      const { closedAt = Infinity, isAcknowledged } = earlier
      must(closedAt <= from, `${name} ran while the tab of ${earlier.name} was open`)
      must(
        isAcknowledged !== true,
        `${name} ran after the server had the result of ${earlier.name}`,
      )
    }
  const reply = replyTo(history.chats.get(turn.chatId)?.[0] ?? [], turn.userMessageId)
  const part = reply?.parts.find(({ toolCallId }) => toolCallId !== undefined)
  const result = runOf(part)
  if (result !== undefined)
    must(
      runs.some(({ name }) => name === result),
      `the result is of no run: ${result}`,
    )
  const approvedAt = turn.kind === 'select' ? findApprovedAt(part, history) : 0
  for (const { name, from } of runs) must(from >= approvedAt, `${name} ran without an approval`)
  return found
}

function findApprovedAt(part: ChatPart | undefined, { audit }: ChaosHistory): number {
  const requested = audit.find(
    ({ event }) => event.type === 'requested' && event.toolCallId === part?.toolCallId,
  )
  const approved = audit.find(
    ({ approvalId, event }) => approvalId === requested?.approvalId && event.type === 'approved',
  )
  return approved?.at ?? Infinity
}

function runOf(part: ChatPart | undefined): string | undefined {
  if (part?.state !== 'output-available') return undefined
  return (part.output as { run?: string }).run ?? 'none'
}
