import type { Chunk } from '../../../protocol/chunk.ts'
import type { Sink } from '../../../turns/log-reader.ts'
import type { RunEvent } from './events.ts'
import type { RunWriter } from './run-writer.ts'

interface RunSinkOptions {
  readonly writer: RunWriter
  /** The events before those of the turn. */
  readonly before: readonly RunEvent[]
  /** Returns the events after those of the turn. */
  readonly finish: () => Promise<readonly RunEvent[]>
}

/** Returns a sink that writes a turn as the events of a run. */
export function toRunSink(sink: Sink, { writer, before, finish }: RunSinkOptions): Sink {
  const writeAll = (events: readonly RunEvent[]): boolean =>
    events.map((event) => sink.write(JSON.stringify(event))).every(Boolean)
  const end = async (): Promise<void> => {
    writeAll(await finish())
    sink.end()
  }
  writeAll(before)
  return {
    hold: () => sink.hold?.(),
    flush: () => sink.flush?.() !== false,
    // AG-UI has no audio.
    pass: () => undefined,
    abandon: () => sink.abandon(),
    write: (json, _entry, text) => {
      // Deltas are frequent, so they are not parsed.
      if (text !== undefined) {
        const head = writer.deltaHead
        return head === undefined || sink.write(`${head}${text}}`)
      }
      // The log holds what `serialiseChunk` made of a chunk.
      return writeAll(writer.write(JSON.parse(json) as Chunk))
    },
    // `finish` never rejects.
    end: () => void end(),
  }
}
