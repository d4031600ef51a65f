// Forms in which a choice decides what else is asked: a field with data-shown-for="choice=a,b" is shown for
// these values of the field "choice". What holds an error stays in sight.

for (const form of document.querySelectorAll("form[data-choices]")) {
  const dependent = [...form.querySelectorAll("[data-shown-for]")].map((control) => {
    const [choice, values] = control.dataset.shownFor.split("=");
    return { field: control.closest(".field"), choice, values: values.split(",") };
  });

  const show = () => {
    for (const { field, choice, values } of dependent) {
      const chosen = form.elements[choice];
      if (field && chosen) {
        field.hidden = !values.includes(chosen.value) && !field.classList.contains("has-error");
      }
    }
  };

  form.addEventListener("change", show);
  show();
}
