import { OUTPUT_RATE } from './plan-turn.ts'

/** Stands in for a voice: a hum as long as the text would take to say. */
export function hum(text: string): Int16Array {
  const samples = new Int16Array(Math.ceil((text.length * OUTPUT_RATE) / 15))
  return samples.map((_, index) => Math.round(Math.sin(index / 20) * 4000))
}
