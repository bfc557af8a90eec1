import type { InspectorLabels } from './labels.ts'

/** Returns the name of a principal for people. Ids of browsers are long and random. */
export function nameOf(id: string, { you }: InspectorLabels, reader: string | undefined): string {
  if (id === reader) return you
  return id.length > 20 ? `${id.slice(0, 8)}…${id.slice(-4)}` : id
}
