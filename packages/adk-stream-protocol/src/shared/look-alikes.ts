/** Cyrillic and Greek letters that most fonts draw like Latin ones, each followed by the Latin letter. */
const SAME_SHAPE =
  'АAВBЕEЅSІIЈJКKМMНHОOРPСCТTУYХXаaеeѕsіiјjоoрpсcуyхxԁdԛqԝwһhΑAΒBΕEΖZΗHΙIΚKΜMΝNΟOΡPΤTΥYΧXοo'

/** Letters that a reader may take for Latin ones. Ordinary words of their languages contain them. */
const SIMILAR_SHAPE =
  'кkмmтtвbнhгrαaρpνvιiτtκkεeυuωwηnɡgıiɑaᴀaʙbᴄcᴅdᴇeꜰfɢgʜhɪiᴊjᴋkʟlᴍmɴnᴏoᴘpʀrꜱsᴛtᴜuᴠvᴡwʏyᴢz'

/** Whether a word of several letters has only letters of other scripts that look like Latin ones. */
export function looksLatin(word: string): boolean {
  return word.length > 1 && Array.from(word).every((letter) => findLatin(SAME_SHAPE, letter))
}

/** Returns the Latin letter that a letter looks like. Returns the letter itself if it looks like none. */
export function toLatinLetter(letter: string): string {
  const same = findLatin(SAME_SHAPE, letter)
  if (same !== undefined) return same
  const lower = letter.toLowerCase()
  const similar = findLatin(SIMILAR_SHAPE, lower)
  if (similar === undefined) return letter
  return lower === letter ? similar : similar.toUpperCase()
}

/** Returns the Latin letter that follows a letter in a table. */
function findLatin(table: string, letter: string): string | undefined {
  const index = table.indexOf(letter)
  return index % 2 === 0 ? table[index + 1] : undefined
}
