import type { CitationMetadata, GroundingChunk, GroundingMetadata } from '@google/genai'

import type { Citation, DataParts } from '../../protocol/message.ts'
import type { ChunkWriter } from './chunk-writer.ts'

/** Writes each source of a grounded reply once, and the passages that it supports. */
export function translateGrounding(writer: ChunkWriter, grounding: GroundingMetadata): void {
  const sourceIds = (grounding.groundingChunks ?? []).map((chunk) => writeSource(writer, chunk))
  const supports = (grounding.groundingSupports ?? []).map(
    ({ segment, groundingChunkIndices }) => ({
      text: segment?.text ?? '',
      startIndex: segment?.startIndex ?? 0,
      endIndex: segment?.endIndex ?? 0,
      sourceIds: (groundingChunkIndices ?? []).flatMap((index) => sourceIds[index] ?? []),
    }),
  )
  const queries = grounding.webSearchQueries ?? []
  const searchEntryPoint = grounding.searchEntryPoint?.renderedContent
  if (supports.length === 0 && queries.length === 0 && searchEntryPoint === undefined) return
  const data: DataParts['grounding'] = {
    queries,
    supports,
    ...(searchEntryPoint !== undefined && { searchEntryPoint }),
  }
  // The same id for the whole turn: later events repeat the grounding with more data, and replace the part.
  writer.addPart({ type: 'data-grounding', id: 'grounding', data })
}

/** Writes cited URLs as sources and stores the passages in the metadata. */
export function translateCitations(
  writer: ChunkWriter,
  { citations = [] }: CitationMetadata,
): void {
  for (const { uri, title } of citations) {
    if (uri !== undefined) writeUrl(writer, uri, title)
  }
  const kept = citations.map(({ startIndex, endIndex, uri, title, license }): Citation => ({
    ...(startIndex !== undefined && { startIndex }),
    ...(endIndex !== undefined && { endIndex }),
    ...(uri !== undefined && { uri }),
    ...(title !== undefined && { title }),
    ...(license !== undefined && { license }),
  }))
  writer.update({ citations: [...writer.state.citations, ...kept] })
}

function writeSource(writer: ChunkWriter, chunk: GroundingChunk): string | undefined {
  const { uri, title } = readSource(chunk)
  const shown = uri === undefined ? undefined : writeUrl(writer, uri, title)
  if (shown !== undefined || title === undefined) return shown
  return writeOnce(writer, title, (sourceId) =>
    writer.addPart({ type: 'source-document', sourceId, mediaType: 'text/plain', title }),
  )
}

interface Source {
  readonly uri?: string | undefined
  readonly title?: string | undefined
}

function readSource(chunk: GroundingChunk): Source {
  const { web, maps, image, retrievedContext: document } = chunk
  if (image) return { ...image, uri: image.sourceUri }
  if (document) return { ...document, title: document.title ?? document.documentName }
  return web ?? maps ?? {}
}

// Pages link to these URLs, so only web addresses become sources.
function writeUrl(writer: ChunkWriter, url: string, title?: string): string | undefined {
  if (!/^https?:\/\//i.test(url)) return undefined
  return writeOnce(writer, url, (sourceId) =>
    writer.addPart({ type: 'source-url', sourceId, url, ...(title !== undefined && { title }) }),
  )
}

function writeOnce(writer: ChunkWriter, key: string, show: (sourceId: string) => void): string {
  const known = writer.state.sources.get(key)
  if (known !== undefined) return known
  const sourceId = `source-${writer.state.sources.size + 1}`
  show(sourceId)
  writer.update({ sources: new Map(writer.state.sources).set(key, sourceId) })
  return sourceId
}
