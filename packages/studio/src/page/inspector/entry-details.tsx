import type { AdkApi } from 'adk-stream-protocol/client'
import { LocateFixed } from 'lucide-react'
import { type ReactNode, useEffect, useState } from 'react'

import { formatMs, formatTime, nameOf } from './format.ts'
import { type ChatPlace, showInChat } from './inspection.ts'
import type { InspectorLabels } from './labels.ts'
import { ScrolledText, useInspectorLabels } from './parts.tsx'
import type { TimelineEntry } from './timeline-rows.ts'
import type { TurnTrace } from './trace.ts'

interface EntryDetailsProps {
  readonly entry: TimelineEntry
  readonly place: ChatPlace
  readonly reader: string | undefined
  readonly children?: ReactNode
}

/** The facts of an entry, and a button that scrolls to it in the conversation. */
export function EntryDetails({ entry, place, reader, children }: EntryDetailsProps) {
  const labels = useInspectorLabels()
  const [isMissing, setMissing] = useState(false)
  const facts = listFacts(entry, labels, reader)
  return (
    <div className="row-details">
      <dl>
        {facts.map(([name, value]) => (
          <div key={`${name} ${value}`}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {'args' in entry && Object.keys(entry.args).length > 0 && (
        <ScrolledText>{JSON.stringify(entry.args, undefined, 2)}</ScrolledText>
      )}
      {children}
      <button type="button" className="show-in-chat" onClick={() => setMissing(!showInChat(place))}>
        <LocateFixed size={14} aria-hidden="true" />
        {labels.showInChat}
      </button>
      {isMissing && <p role="status">{labels.notInChat}</p>}
    </div>
  )
}

export function NetworkDetails({ trace }: { readonly trace: TurnTrace }) {
  const labels = useInspectorLabels()
  const { startedAt, firstAt, firstWordAt, endedAt, chunks, error } = trace
  const facts: [string, string | undefined][] = [
    [labels.firstChunk, after(startedAt, firstAt)],
    [labels.firstWord, after(startedAt, firstWordAt)],
    [labels.whole, after(startedAt, endedAt)],
    [labels.received, labels.chunks(chunks)],
    [labels.error, error],
  ]
  return (
    <div className="row-details">
      <dl>
        {facts.map(
          ([name, value]) =>
            value !== undefined && (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{value}</dd>
              </div>
            ),
        )}
      </dl>
    </div>
  )
}

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

/** Formats the time between two times. */
function after(start: number, at: number | undefined): string | undefined {
  return at === undefined ? undefined : formatMs(at - start)
}

/** Where recorded model calls are read. */
export interface ModelCallSource {
  readonly api: Pick<AdkApi, 'readModelCall' | 'listNotices'>
  readonly chatId: string
}

interface ModelCallViewProps {
  readonly source: ModelCallSource
  readonly callId: string
}

type Loaded = Awaited<ReturnType<AdkApi['readModelCall']>> | 'failed'

/** What the model was asked and replied. It is read when it is opened. */
export function ModelCallView({ source, callId }: ModelCallViewProps) {
  const { modelCall: labels } = useInspectorLabels()
  const { api, chatId } = source
  const [isOpen, setOpen] = useState(false)
  const [loaded, setLoaded] = useState<Loaded>()
  useEffect(() => {
    if (!isOpen) return undefined
    let isCurrent = true
    const load = async (): Promise<void> => {
      const call = await api.readModelCall(chatId, callId).catch(() => 'failed' as const)
      if (isCurrent) setLoaded(call)
    }
    void load()
    return () => {
      isCurrent = false
    }
  }, [api, chatId, callId, isOpen])
  return (
    <details className="model-call" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{labels.title}</summary>
      {loaded === undefined && <p role="status">{labels.loading}</p>}
      {loaded === 'failed' && <p role="alert">{labels.failed}</p>}
      {typeof loaded === 'object' && (
        <>
          <h4>{labels.request}</h4>
          <ScrolledText>{JSON.stringify(loaded.request, undefined, 2)}</ScrolledText>
          <h4>{labels.reply}</h4>
          <ScrolledText>{JSON.stringify(loaded.replies, undefined, 2)}</ScrolledText>
          <p className="model-call-note">{labels.note}</p>
        </>
      )}
    </details>
  )
}
