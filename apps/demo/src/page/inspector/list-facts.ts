import type { TimelineEntry } from 'adk-stream-protocol/client'

import { formatMs } from './format-ms.ts'
import type { InspectorLabels } from './labels.ts'
import { nameOf } from './name-of.ts'

/** Returns the names and values of an entry's facts. */
export function listFacts(
  entry: TimelineEntry,
  labels: InspectorLabels,
  reader: string | undefined,
): [string, string][] {
  const { facts } = labels
  const time = (at: number | undefined): string | undefined =>
    at === undefined ? undefined : formatTime(at, labels)
  const found: [string, string | undefined][] = [[facts.started, time(entry.at)]]
  if (entry.type === 'model')
    found.push(
      [facts.agent, entry.agent],
      [facts.firstToken, after(entry.at, entry.firstAt)],
      [facts.ended, time(entry.endedAt)],
    )
  if ((entry.type === 'model' || entry.type === 'turn') && entry.usage) {
    const { inputTokens, outputTokens } = entry.usage
    found.push([facts.tokens, labels.usage(inputTokens, outputTokens)])
  }
  if (entry.type === 'tool' || entry.type === 'browser-tool')
    found.push([facts.state, labels.toolStates[entry.state]], [facts.ended, time(entry.endedAt)])
  if (entry.type === 'approval') {
    const { votes, decision, given, needed, deadline } = entry
    if (needed > 1) found.push([facts.votes, labels.votes(given, needed)])
    for (const vote of votes)
      found.push([
        vote.withdrawnAt === undefined ? facts.vote : facts.withdrawn,
        `${nameOf(vote.by, labels, reader)} · ${time(vote.withdrawnAt ?? vote.at)}`,
      ])
    if (decision) {
      const by = decision.by === undefined ? '' : ` · ${nameOf(decision.by, labels, reader)}`
      const name = labels.stops[decision.state] ?? decision.state
      found.push(
        [facts.decided, `${name}${by} · ${time(decision.at)}`],
        [facts.reason, decision.reason],
      )
    } else found.push([facts.expires, time(deadline)])
    found.push(
      [facts.callStarted, time(entry.startedAt)],
      [facts.callEnded, time(entry.finishedAt)],
    )
  }
  if (entry.type === 'error') found.push([facts.code, entry.code])
  return found.filter((fact): fact is [string, string] => fact[1] !== undefined)
}

/** Formats the time of an entry. */
export function formatTime(at: number, { locale }: InspectorLabels): string {
  return new Date(at).toLocaleTimeString(locale, { timeStyle: 'medium' })
}

/** Formats the time between two times. */
export function after(start: number, at: number | undefined): string | undefined {
  return at === undefined ? undefined : formatMs(at - start)
}
