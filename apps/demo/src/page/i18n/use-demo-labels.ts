import { type Language, useLanguage } from 'adk-stream-protocol-studio/page'

import { en } from './en.ts'
import { ja } from './ja.ts'
import type { DemoLabels } from './labels.ts'

export const LABELS: Readonly<Record<Language, DemoLabels>> = { en, ja }

/** Returns the demo's texts in the language of the page. */
export function useDemoLabels(): DemoLabels {
  return LABELS[useLanguage().language]
}
