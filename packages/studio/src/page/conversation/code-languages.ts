import { common, createLowlight } from 'lowlight'

/** The 37 most common languages, with their short names (`ts`, `py`). This file is loaded with the first code. */
export const lowlight = createLowlight(common)
