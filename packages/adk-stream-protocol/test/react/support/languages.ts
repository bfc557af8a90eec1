import { en, ja } from '../../../src/react/index.ts'

/** The built-in labels, by language. */
export const LANGUAGES = { en, ja }

export type Language = keyof typeof LANGUAGES
