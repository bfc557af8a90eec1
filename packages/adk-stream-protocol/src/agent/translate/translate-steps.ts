import { isDeepStrictEqual } from 'node:util'

import type { StepProgress } from '../../protocol/message.ts'
import type { EventNotes, ProgressNote } from '../history/event-notes.ts'
import type { ChunkWriter } from './chunk-writer.ts'
import type { Translation } from './translation.ts'
import { isCallWaiting } from './translation.ts'

/** Writes the progress of agents with steps, if an event has changed it. */
export function translateSteps(writer: ChunkWriter, { progress: note }: EventNotes): void {
  const { progress } = writer.state
  if (note) {
    const known = progress.get(note.id)
    // Only the first note of a run has the edges, and an AI SDK client replaces the whole part.
    const edges = note.edges ?? known?.note.edges
    const next = { note: { ...note, ...(edges && { edges }) }, written: known?.written }
    writer.update({ progress: new Map(progress).set(note.id, next) })
  }
  for (const [id, known] of writer.state.progress) {
    const data = toPart(known.note, writer.state)
    if (isDeepStrictEqual(data, known.written)) continue
    const chunk = { type: 'data-steps', id, data } as const
    if (known.written) writer.replacePart(chunk)
    else writer.addPart(chunk)
    const next = { note: known.note, written: data }
    writer.update({ progress: new Map(writer.state.progress).set(id, next) })
  }
}

function toPart({ id: _id, steps, ...rest }: ProgressNote, state: Translation): StepProgress {
  const { agent } = rest
  return {
    ...rest,
    steps: steps.map((step) =>
      step.state === 'running' && isWaitingIn(state, agent, step.name)
        ? { ...step, state: 'waiting' }
        : step,
    ),
  }
}

/** Whether a call waits in a step of an agent. */
function isWaitingIn({ calls }: Translation, agentName: string, stepName: string): boolean {
  return [...calls.values()].some(
    (call) =>
      isCallWaiting(call) &&
      call.steps?.some(({ agent, step }) => agent === agentName && step === stepName),
  )
}
