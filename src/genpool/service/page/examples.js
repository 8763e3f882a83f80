// What a first visitor can click.

export const EXAMPLES = {
  one: [
    {
      title: "a dog on the beach",
      first: "A small brown dog runs along the beach with a red ball.",
    },
    { title: "a price falls", first: "The price of oil fell sharply after the announcement." },
    { title: "negation", first: "The film was not nearly as funny as its trailer." },
    { title: "a question", first: "Why do cats purr when somebody strokes them?" },
  ],
  two: [
    {
      title: "the same in other words",
      first: "A man is playing a guitar on stage.",
      second: "A musician performs a song for the audience.",
    },
    {
      title: "the opposite",
      first: "A woman is sleeping on the sofa.",
      second: "A woman is jogging through the park.",
    },
    {
      title: "the same words, another order",
      first: "The dog chases the child.",
      second: "The child chases the dog.",
    },
    {
      title: "nothing in common",
      first: "Two children build a castle of sand.",
      second: "The committee postponed its decision.",
    },
  ],
  search: [
    { title: "an animal moves", first: "an animal is moving" },
    { title: "energy gets cheaper", first: "energy is getting cheaper" },
  ],
};

/** Returns the texts of an example. */
export const textsOf = ({ first, second = "" }) => ({ first, second });

/** Returns whether a first sentence is that of an example. */
export const isExample = (sentence) =>
  Object.values(EXAMPLES)
    .flat()
    .some(({ first }) => first === sentence);
