import { clients } from '../../support/clients.ts'
import { readFrames, type WireChunk } from '../../support/wire-rules.ts'

/** The keys of the chunks of approvals. The first releases of AI SDK 6 and 7 know these and no others. */
const KEYS: Readonly<Record<string, readonly string[]>> = {
  'tool-approval-request': ['type', 'approvalId', 'toolCallId'],
  'tool-output-denied': ['type', 'toolCallId'],
}

/** Throws unless both versions accept every chunk of every stream, and every complete stream begins and ends as it must. */
export async function checkStreams(bodies: readonly string[]): Promise<void> {
  const faults: string[] = []
  for (const body of bodies) {
    const { chunks, faults: torn, done } = readFrames(body)
    faults.push(...torn, ...(done ? findEndFaults(chunks) : []))
    for (const chunk of chunks) faults.push(...(await findChunkFaults(chunk)))
  }
  if (faults.length > 0) throw new Error(`The wire breaks the protocol:\n${faults.join('\n')}`)
}

function findEndFaults(chunks: readonly WireChunk[]): string[] {
  const starts = chunks.filter(({ type }) => type === 'start').length
  const last = chunks.at(-1)?.type
  const faults: string[] = []
  if (chunks[0]?.type !== 'start' || starts !== 1) faults.push(`${starts} starts`)
  if (last !== 'finish' && last !== 'error') faults.push(`ends with ${last}`)
  return faults
}

async function findChunkFaults(chunk: WireChunk): Promise<string[]> {
  const faults: string[] = []
  const known = KEYS[chunk.type]
  const extra = known ? Object.keys(chunk).filter((key) => !known.includes(key)) : []
  if (extra.length > 0) faults.push(`${chunk.type} has ${extra.join()}`)
  for (const { name, acceptsChunk } of clients) {
    if (!(await acceptsChunk(chunk))) faults.push(`${name} refuses ${JSON.stringify(chunk)}`)
  }
  return faults
}
