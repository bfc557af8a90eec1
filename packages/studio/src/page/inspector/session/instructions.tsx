import type { Timeline } from 'adk-stream-protocol/client'
import { useEffect, useState } from 'react'
import { z } from 'zod'

import type { ModelCallSource } from '../entry-details.tsx'
import { useSessionLabels } from './labels.ts'

type ModelEntry = Extract<Timeline['entries'][number], { type: 'model' }>

/** A model call whose request was recorded. */
export type RecordedCall = ModelEntry & { readonly callId: string }

/** Returns the model calls whose requests were recorded. */
export function findRecordedCalls(timeline: Timeline | undefined): RecordedCall[] {
  return (timeline?.entries ?? []).flatMap((entry) =>
    entry.type === 'model' && entry.callId !== undefined
      ? [{ ...entry, callId: entry.callId }]
      : [],
  )
}

const Content = z.object({ parts: z.array(z.looseObject({ text: z.string().optional() })) })
const Request = z.object({
  config: z.object({ systemInstruction: z.union([z.string(), Content]).optional() }).optional(),
})

/** Returns the instruction of a recorded request, as text. */
export function readInstruction(request: unknown): string {
  const found = Request.safeParse(request).data?.config?.systemInstruction
  if (found === undefined || typeof found === 'string') return found ?? ''
  return found.parts.map(({ text = '' }) => text).join('\n')
}

interface InstructionsProps {
  /** At least two. */
  readonly calls: readonly RecordedCall[]
  readonly source: ModelCallSource
}

/** The difference between the instructions of two model calls. Without a choice, of the last two. */
export function Instructions({ calls, source }: InstructionsProps) {
  const labels = useSessionLabels()
  const [isOpen, setOpen] = useState(false)
  const [chosen, choose] = useState<{ readonly first?: string; readonly second?: string }>({})
  const first = chosen.first ?? calls.at(-2)?.callId ?? ''
  const second = chosen.second ?? calls.at(-1)?.callId ?? ''
  return (
    <details className="instructions" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{labels.compare}</summary>
      {isOpen && (
        <>
          <CallChoice
            label={labels.before}
            chosen={first}
            calls={calls}
            onChoose={(callId) => choose({ first: callId, second })}
          />
          <CallChoice
            label={labels.after}
            chosen={second}
            calls={calls}
            onChoose={(callId) => choose({ first, second: callId })}
          />
          <Difference key={`${first} ${second}`} {...{ first, second, source }} />
        </>
      )}
    </details>
  )
}

interface CallChoiceProps {
  readonly label: string
  readonly chosen: string
  readonly calls: readonly RecordedCall[]
  readonly onChoose: (callId: string) => void
}

function CallChoice({ label, chosen, calls, onChoose }: CallChoiceProps) {
  const { locale, modelCall } = useSessionLabels()
  return (
    <label>
      {label}{' '}
      <select value={chosen} onChange={(event) => onChoose(event.target.value)}>
        {calls.map(({ callId, at, agent = '' }, index) => (
          <option key={callId} value={callId}>
            {modelCall(index + 1, agent, new Date(at).toLocaleTimeString(locale))}
          </option>
        ))}
      </select>
    </label>
  )
}

interface DifferenceProps {
  readonly first: string
  readonly second: string
  readonly source: ModelCallSource
}

type Loaded = { readonly before: string; readonly after: string } | 'loading' | 'failed'

function Difference({ first, second, source }: DifferenceProps) {
  const labels = useSessionLabels()
  const { api, chatId } = source
  const [loaded, setLoaded] = useState<Loaded>('loading')
  useEffect(() => {
    let isCurrent = true
    const load = async (): Promise<void> => {
      const next = await readInstructions({ api, chatId }, first, second)
      if (isCurrent) setLoaded(next)
    }
    void load()
    return () => {
      isCurrent = false
    }
  }, [api, chatId, first, second])
  if (loaded === 'loading') return <p role="status">{labels.loadingCalls}</p>
  if (loaded === 'failed') return <p role="alert">{labels.unreadableCalls}</p>
  if (loaded.before === loaded.after) return <p role="status">{labels.sameInstruction}</p>
  return (
    <figure className="adk-code adk-diff">
      {/* It is focusable, so that it can be scrolled by keyboard. */}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <pre tabIndex={0}>
        {compareLines(loaded.before, loaded.after).map(({ type: Line, text }, index) => (
          // The lines keep their order.
          <Line key={index}>{text === '' ? ' ' : text}</Line>
        ))}
      </pre>
    </figure>
  )
}

async function readInstructions(
  { api, chatId }: ModelCallSource,
  first: string,
  second: string,
): Promise<Loaded> {
  try {
    const before = await api.readModelCall(chatId, first)
    const after = await api.readModelCall(chatId, second)
    return { before: readInstruction(before.request), after: readInstruction(after.request) }
  } catch {
    // The server no longer has one of the calls, or cannot be reached.
    return 'failed'
  }
}

interface ComparedLine {
  /** Added, removed, or in both. */
  readonly type: 'ins' | 'del' | 'span'
  readonly text: string
}

/** Compares two texts line by line: a line that the other text has later is where both continue. */
export function compareLines(before: string, after: string): ComparedLine[] {
  const rest = after.split('\n')
  const lines = before.split('\n').flatMap((text): ComparedLine[] => {
    const at = rest.indexOf(text)
    if (at < 0) return [{ type: 'del', text }]
    const added = rest.splice(0, at + 1).slice(0, -1)
    return [...added.map((each) => ({ type: 'ins' as const, text: each })), { type: 'span', text }]
  })
  return [...lines, ...rest.map((text) => ({ type: 'ins' as const, text }))]
}
